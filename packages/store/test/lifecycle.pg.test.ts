import { testLifecycle } from "./a-lifecycle.ts";
import { useBench } from "./a-store.ts";

testLifecycle(useBench());
