// Says so many lines and comes to its end in one of the ways in which a process does.
import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { openLog } from "../src/index.ts";

const log = openLog({ service: "test", level: "info" });
let said = 0;

function say(lines: number): void {
  for (let line = 0; line < lines; line += 1) {
    log.info({ event: "test.said", n: said, text: "ä".repeat(40) }, "said");
    said += 1;
  }
}

/** Says it while nobody reads, and once more when somebody does. */
async function sayUnread(lines: number): Promise<void> {
  say(lines);
  await turn();
  await turn();
  process.send?.("goes on");
  await once(process, "message");
  say(1);
}

const [end = "", lines = "0"] = process.argv.slice(2);
switch (end) {
  case "returns":
    say(Number(lines));
    break;
  case "exits":
    say(Number(lines));
    process.exit(3);
    break;
  case "throws":
    say(Number(lines));
    throw new Error("It fails");
  case "rejects":
    say(Number(lines));
    void Promise.reject(new Error("It fails"));
    break;
  case "is killed after a fatal line":
    say(Number(lines) - 1);
    log.fatal({ event: "test.died", n: said }, "died");
    process.kill(process.pid, "SIGKILL");
    break;
  case "exits unread":
    await sayUnread(Number(lines));
    process.exit(0);
    break;
}
