import { AuditFinding, Maintenance, Retention, Run, Tombstone } from "@holdpoint/protocol";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { AUDIT_RULES } from "../../../packages/upkeep/src/index.ts";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(async () => {
  await desk[Symbol.asyncDispose]();
});

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });

async function json<T>(schema: z.ZodType<T>, user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await as(user, ...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

/** The only run, which was cancelled so many days ago. */
async function aRunCancelled(daysAgo: number): Promise<string> {
  const { id } = await json(Run, "alice", "runs", "submit", "clerk@1", "ask me");
  await json(Run, "alice", "runs", "cancel", id);
  const ended = await waitForEnd(id);
  await desk.store.pool.query(
    "update holdpoint.runs set ended_at = ended_at - $1::int * interval '1 day' where ended_at is not null",
    [daysAgo],
  );
  return ended;
}

async function waitForEnd(id: string): Promise<string> {
  const ended = async () =>
    (await desk.store.pool.query("select from holdpoint.runs where ended_at is not null")).rowCount === 1;
  await waitFor(ended, { deadlineMs: 20_000, what: `${id} to end` });
  return id;
}

test("maintenance prints the same list before and after, does it once, and retention and tombstones tell of it", async () => {
  const id = await aRunCancelled(31);
  const looked = await as("olga", "maintenance", "--dry-run");
  expect(looked.exitCode).toBe(0);
  const row = new RegExp(`remove: it is past its retention +${id}`);
  expect(looked.out).toMatch(row);
  expect(looked.out).toContain("Nothing was done. holdpoint maintenance --apply does it.");
  const table = looked.out.split("\n\n")[0];

  const done = await as("olga", "maintenance", "--apply");
  expect(done.out.split("\n\n")[0]).toBe(table);
  expect(done.out).toContain("Found after that, and done as well (1):");
  expect(done.out).toMatch(/remove: nothing refers to it any more +session ses_/);
  expect((await as("olga", "maintenance", "--apply")).out).toBe("nothing to do\n");
  const again = await json(Maintenance, "olga", "maintenance");
  expect(again).toEqual({ actions: [], unreadable: [], applied: null });

  const { out } = await as("olga", "tombstones", id);
  expect(out).toContain(`${id}: clerk@1 for alice, cancelled`);
  expect(out).toContain("no effects");
  const { items } = await json(z.object({ items: z.array(Tombstone) }), "olga", "tombstones", id);
  expect(items).toMatchObject([{ runId: id, status: "cancelled" }]);
  expect((await as("olga", "tombstones", "--external-ref", "re_none")).out).toBe("no removed run is known by that\n");
});

test("what cannot be meant is refused before anything is asked", async () => {
  for (const argv of [
    ["maintenance", "--apply", "--dry-run"],
    ["tombstones"],
    ["tombstones", "--operation-id", "a", "--external-ref", "b"],
    ["retention", "--failed", "0"],
    ["retention", "--failed", "soon"],
  ]) {
    const { exitCode, err } = await as("olga", ...argv);
    expect({ argv, exitCode }).toEqual({ argv, exitCode: 2 });
    expect(err).not.toBe("");
  }
  expect((await as("alice", "maintenance", "--apply")).exitCode).toBe(1);
});

test("retention is shown and changed", async () => {
  const before = await json(Retention, "olga", "retention");
  expect(await json(Retention, "olga", "retention", "--failed", "90", "--tombstone", "400")).toEqual({
    ...before,
    failedDays: 90,
    tombstoneDays: 400,
  });
  const { out } = await as("olga", "retention", "--failed", "30");
  expect(out).toContain("succeeded 30, partial 30, blocked 30, failed 30, cancelled 30");
  expect(out).toContain("Their tombstones and idempotency keys 400 days longer.");
});

describe("audit", () => {
  test("prints a finding with the command that mends it; that there is none is said as well", async () => {
    expect((await as("olga", "audit")).out).toBe("0 findings, 0 errors, 0 warnings\n");
    await desk.store.pool.query(
      `insert into holdpoint.services (tenant_id, name, reason, failures, since, closed_until, updated_at)
       values ($1, 'payments', 'throttled', 9, holdpoint.clock() - interval '2 hours', holdpoint.clock() + interval '1 minute',
         holdpoint.clock())`,
      [desk.store.tenantId],
    );
    const { out } = await as("olga", "audit");
    expect(out).toContain("1 findings, 0 errors, 1 warnings");
    expect(out).toMatch(/service_closed_long +2 h +it has failed for everybody/);
    const { items } = await json(z.object({ items: z.array(AuditFinding) }), "olga", "audit");
    expect(items).toMatchObject([{ code: "service_closed_long", subject: "payments", mend: "holdpoint services" }]);
  });

  test.each(Object.entries(AUDIT_RULES))("%s is mended by a command that there is", async (_code, { mend }) => {
    const [program, ...words] = mend.split(" ");
    expect(program).toBe("holdpoint");
    const command = words.filter((word) => /^[a-z]/.test(word));
    const { exitCode, out } = await run([...command, "--help"]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(new RegExp(`^Usage: holdpoint ${command.join(" ")}[ \n]`));
    for (const option of words.filter((word) => word.startsWith("--"))) expect(out).toContain(option);
  });
});
