// The product's worker, whose runs wait for a manager.

import { heldAgent } from "./held-agent.ts";
import { startProductWorker } from "./product-worker.ts";
import { serve } from "./worker-channel.ts";

await serve((start) => startProductWorker(start, heldAgent()));
