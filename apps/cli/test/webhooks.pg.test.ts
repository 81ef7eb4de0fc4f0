import { AddedWebhook, Delivery, Run } from "@holdpoint/protocol";
import { claimDeliveries, recordSending } from "@holdpoint/store";
import { waitFor } from "@holdpoint/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, openDesk, TOKENS } from "./a-desk.ts";
import { type Ran, run } from "./a-world.ts";

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(() => desk[Symbol.asyncDispose]());

const as = (user: keyof typeof TOKENS, ...argv: readonly string[]): Promise<Ran> =>
  run(argv, { env: { HOLDPOINT_API_URL: desk.baseUrl, HOLDPOINT_TOKEN: TOKENS[user] } });
const olga = (...argv: readonly string[]) => as("olga", "webhooks", ...argv);

async function json<T>(schema: z.ZodType<T>, ...argv: readonly string[]): Promise<T> {
  const { exitCode, out, err } = await olga(...argv, "--json");
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  return schema.parse(JSON.parse(out));
}

/** What a sender does with what is due, as if the receiver had answered 500 for the last time. */
async function giveUp(): Promise<void> {
  const room = { limit: 10, perWebhook: 10, sending: new Map<string, number>(), leaseMs: 60_000 };
  for (const { id: deliveryId, attempt } of await claimDeliveries(desk.store, room))
    await recordSending(desk.store, { deliveryId, attempt, httpStatus: 500, errorCode: "HTTP_500", retryInMs: null });
}

test("add shows the secret this once; list, policy and disable say what is so now", async () => {
  const { out } = await olga("add", "billing", "https://billing.example.com/hook", "--agent", "clerk");
  expect(out).toMatch(
    /^billing\nUrl +https:\/\/billing\.example\.com\/hook\nTells +ends of runs of clerk \(done_only\)\n/,
  );
  expect(out).toMatch(/\nSecret +whsec_[\w-]{43}\n.*shown this once/);
  const listed = await olga("list");
  expect(listed.out).toMatch(/billing +ends +clerk .* https:\/\/billing\.example\.com\/hook\n/);
  expect(listed.out).not.toContain("whsec_");
  expect((await olga("policy", "billing", "silent")).out).toMatch(/\nTells +nothing of runs of clerk \(silent\)\n/);
  expect((await olga("disable", "billing")).out).toMatch(/\nDisabled +by olga, /);
  expect((await olga("list")).out).toMatch(/billing +disabled /);
});

test("deliveries are listed with what became of them, sent again and dismissed", async () => {
  const { webhook } = await json(AddedWebhook, "add", "ledger", "https://ledger.example.com/");
  expect(webhook.policy).toBe("done_only");
  const submitted = await as("alice", "runs", "submit", "clerk@1", "pay the bill", "--json");
  const { id: runId } = Run.parse(JSON.parse(submitted.out));
  await as("alice", "runs", "cancel", runId);
  await waitFor(async () => (await olga("deliveries", "--run", runId)).out.includes("cancelled"), {
    deadlineMs: 10_000,
    what: "the run's end to be told",
  });
  await giveUp();
  const page = await json(z.object({ items: z.array(Delivery), next: z.null() }), "deliveries", "--run", runId);
  const [delivery] = page.items;
  expect(delivery).toMatchObject({ state: "dead", status: "cancelled" });
  const deliveryId = delivery?.id ?? "";
  const { out } = await olga("deliveries", "--state", "dead", "--webhook", "ledger");
  expect(out).toMatch(new RegExp(`${deliveryId} +ledger +dead +1 +${runId}\\s+cancelled`));
  expect(out.replaceAll(/\s+/g, " ")).toContain("last answer HTTP_500");
  expect((await olga("retry", deliveryId, "--note", "it is back")).out).toMatch(
    /: pending; .*; retried by olga: it is back\n$/,
  );
  expect((await olga("dismiss", deliveryId)).out).toMatch(/: dismissed; .*; dismissed by olga\n$/);
  expect((await olga("deliveries", "--state", "dead")).out).toBe("no deliveries\n");
});

test.each([
  [["add", "bad", "http://example.com"], "must be https"],
  [["add", "Bad", "https://example.com"], "must be a-z, 0-9 and -"],
  [["add", "bad", "https://example.com", "--policy", "loud"], "must be one of done_only, state_changes, silent"],
  [["policy", "ledger", "loud"], "must be one of done_only, state_changes, silent"],
  [["deliveries", "--state", "lost"], "must be one of pending, delivered, dead, dismissed"],
  [["retry", "dlv_1"], "must be the id of a delivery"],
])("%j says what is wrong, and ends with 2", async (argv, said) => {
  const { exitCode, out, err } = await olga(...argv);
  expect({ exitCode, out }).toEqual({ exitCode: 2, out: "" });
  expect(err).toContain(said);
});

test("are for operators", async () => {
  expect(await as("alice", "webhooks", "list")).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining("operators"),
  });
});
