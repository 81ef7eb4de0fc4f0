// A worker of the parcel agent that is killed at a point: arguments are the database, the worker's id and the point.

import { createWorker } from "@holdpoint/runtime";
import { openFaultPoints } from "@holdpoint/testkit/fault-points";
import { openStore } from "../../packages/store/src/index.ts";
import { createParcelAgent } from "./parcel-agent.ts";
import { handInAt } from "./parcels.ts";

const [url = "", workerId = "", at = ""] = process.argv.slice(2);
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

const points = openFaultPoints({ at });
const store = openStore({ url, maxConnections: 4 });
await createWorker({
  store: points.store(store),
  agents: [points.agent(createParcelAgent(handInAt(store.pool)))],
  queue: { kind: "postgres", url },
  slots: 1,
  leaseMs: 15_000,
  renewMs: 5_000,
  log: silent,
  workerId,
});
