// The product's worker as its own program runs it (apps/worker), with an agent that does nothing but answer.

import { benchAgent } from "./bench-agent.ts";
import { startProductWorker } from "./product-worker.ts";
import { serve } from "./worker-channel.ts";

await serve((start) => startProductWorker(start, benchAgent(start.work)));
