// The product's worker, whose runs keep their slots.

import { busyAgent } from "./busy-agent.ts";
import { startProductWorker } from "./product-worker.ts";
import { serve } from "./worker-channel.ts";

await serve((start) => startProductWorker(start, busyAgent()));
