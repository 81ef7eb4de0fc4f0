// A small program for the tests of parts. What it does is its first argument.

import { fork } from "node:child_process";
import { once } from "node:events";

const [behaviour = "steady"] = process.argv.slice(2);

switch (behaviour) {
  case "broken":
    process.stderr.write("the cupboard is bare\n");
    process.exit(3);
    break;
  case "stubborn":
    process.on("SIGTERM", () => undefined);
    stayAlive();
    break;
  case "parent":
    fork(import.meta.filename, ["stubborn"]);
    break;
  case "steady":
    void once(process, "SIGTERM").then(() => process.exit(0));
    stayAlive();
    break;
}
process.stdout.write(`${JSON.stringify({ event: `${behaviour}.ready`, pid: process.pid })}\n`);

function stayAlive(): void {
  setInterval(() => undefined, 1_000);
}
