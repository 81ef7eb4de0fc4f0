import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { waitFor } from "../../packages/testkit/src/wait-for.ts";
import { type Fleet, isAlive, openFleet } from "./processes.ts";

let fleet: Fleet;

beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet[Symbol.asyncDispose]());

/** Stops a process in its place, as a machine that hangs does; it goes on when it is thawed, at the latest at the end. */
function freeze(pid: number): () => void {
  let frozen = true;
  const thaw = (): void => {
    if (frozen && isAlive(pid)) process.kill(pid, "SIGCONT");
    frozen = false;
  };
  process.kill(pid, "SIGSTOP");
  onTestFinished(thaw);
  return thaw;
}

/** All that is stored of a run. */
async function rowsOf(runId: string): Promise<unknown> {
  const of = (table: string) =>
    `(select jsonb_agg(to_jsonb(t) order by to_jsonb(t)) from holdpoint.${table} t where t.run_id = $1)`;
  const tables = ["transitions", "steps", "calls", "attempts", "inbox"].map((table) => `${of(table)} as ${table}`);
  const { rows } = await fleet.store.pool.query(
    `select to_jsonb(r) as run, ${tables.join(", ")} from holdpoint.runs r where r.id = $1`,
    [runId],
  );
  return rows;
}

test("a process that was frozen beyond its lease finds its run with another, writes nothing more, and ends", async () => {
  await fleet.sweeper();
  const first = await fleet.worker();
  fleet.outside.hold("f");
  const [id = ""] = await fleet.submit("look f");
  await fleet.outside.untilAsked("f");
  const pid = await fleet.ownerPid(id);
  await fleet.worker();
  const thaw = freeze(pid);
  // The other one has it, and asks for the same; both have their answers now, and only one can hear it.
  await fleet.outside.untilAsked("f", 2);
  expect(await fleet.ownerPid(id)).not.toBe(pid);
  fleet.outside.release("f");
  await fleet.untilStatus([id], "completed");
  const before = await rowsOf(id);
  thaw();
  await waitFor(() => !isAlive(pid), { deadlineMs: 20_000, what: "the process to end" });
  expect(await rowsOf(id)).toEqual(before);
  expect((await fleet.history(id)).map(({ event }) => event)).toEqual([
    "Submitted",
    "Claimed",
    "OwnerGone",
    "Recovered",
    "Claimed",
    "Ended",
  ]);
  expect(first.output()).toContain('"ending":"lost"');
});
