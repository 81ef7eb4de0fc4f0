import { findOwnedBy } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDesk } from "./desk.ts";
import { brokenConnection, faultyStore } from "./faulty-store.ts";
import { type Fleet, openFleet } from "./fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await openFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** A log that is read by the test. */
function notes() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, count: (event: string) => lines.filter((line) => line.event === event).length };
}

describe("drain", () => {
  test("ends while the database is away: that the worker could not retire is a line of the log", async () => {
    const { log, count } = notes();
    const store = faultyStore(fleet.store, async ({ verb, send }) => {
      if (verb === "worker_gone") throw brokenConnection();
      return send();
    });
    const worker = await fleet.start(aDesk([], []), { store, log });
    await worker.drain(0);
    expect(count("worker.not_retired")).toBe(1);
  });

  test("ends although a run cannot be given away: its worker is gone then", async () => {
    const { log, count } = notes();
    const agent = aDesk([{ text: "done" }], []);
    const store = faultyStore(fleet.store, async ({ verb, send }) => {
      if (verb === "commit_steps" || verb === "transition") throw new TypeError("broken");
      return send();
    });
    const worker = await fleet.start(agent, { store, log });
    const run = await fleet.submit(agent);
    await waitFor(() => count("run.not_given_away") > 0, { deadlineMs: 10_000, what: "a first try" });
    await worker.drain(0);
    expect((await findOwnedBy(fleet.store, worker.id, 10)).map(({ run: { id } }) => id)).toEqual([run.id]);
    const { rows } = await fleet.store.pool.query("select gone_reason from holdpoint.workers where id = $1", [
      worker.id,
    ]);
    expect(rows).toEqual([{ gone_reason: "retired" }]);
  });
});

describe("a run whose loop fails", () => {
  test("is given to an operator, however often that cannot be stored", async () => {
    const { log, count } = notes();
    const agent = aDesk([{ text: "done" }], []);
    let broke = 0;
    const store = faultyStore(fleet.store, async ({ verb, send }) => {
      if (verb === "commit_steps" || (verb === "transition" && broke < 5)) {
        broke += 1;
        throw new TypeError("broken");
      }
      return send();
    });
    await fleet.start(agent, { store, log });
    const run = await fleet.submit(agent);
    const held = await fleet.untilStatus(run.id, "waiting_operator");
    expect(held.state.waitingFor?.reason).toBe("agent_error");
    expect(count("run.not_given_away")).toBe(3);
  });
});
