import type { TimelineEntry } from "@holdpoint/protocol";
import pc from "picocolors";
import { whoDid } from "./follow.ts";
import { money, tell, timeOfDay } from "./in-words.ts";
import type { LedgerRow, RequestCount } from "./sandbox-admin.ts";
import { CASE_ORDER, EDITED_ORDER, LARGE_ORDER, ORDER, type Stage } from "./stage.ts";
import type { Told } from "./story.ts";

const REFUNDS = "/v1/refunds";
const CLAIMS = 3;
const KILLED_CALLS = 2;
const ORDERS = [ORDER, LARGE_ORDER, EDITED_ORDER, CASE_ORDER].map(({ paymentIntent }) => paymentIntent);

/** The first run's timeline, the sandbox's ledger and its request counts, and the claims about them. */
export async function closeWithReport(stage: Stage, { run, follower, approval }: Told): Promise<readonly LedgerRow[]> {
  const { people, crew, sandbox, narrator, signal } = stage;
  narrator.chapter("What is on record");
  const timeline = await follower.catchUp();
  const rows = await Promise.all(
    timeline
      .filter(({ kind }) => kind !== "step")
      .map(async (entry) => rowOf(entry, await whoDid(entry, timeline, crew))),
  );
  narrator.plain(`\n   The first run's timeline (${run.id})\n\n${table(["when", "who", "status", "what"], rows)}\n`);

  const ledger = await sandbox.ledger();
  const ledgerRows = ledger.map((row) => [
    String(row.seq),
    clock(row.moved_at),
    row.refund,
    money(row.amount, row.currency),
    row.idempotency_key ?? "",
  ]);
  narrator.plain(
    `   The payment sandbox's ledger\n\n${table(["row", "when", "refund", "amount", "key"], ledgerRows)}\n`,
  );
  const requests = await sandbox.requests();
  const counts = requests.filter(({ path }) => path.startsWith(REFUNDS));
  narrator.plain(`   What it was asked about refunds\n\n${table(["times", "request", "key"], counts.map(countRow))}\n`);

  const { items: calls } = await people.olga.listCalls({ runId: run.id }, { signal });
  const times = (tool: string) => calls.filter((call) => call.tool === tool && call.attempts.length === 1).length;
  const claims = timeline.filter((entry) => entry.kind === "transition" && entry.event === "Claimed");
  const claimants = new Set(claims.flatMap((entry) => (entry.kind === "transition" ? [entry.actor.id] : [])));
  const [row] = ledger;
  if (row === undefined) throw new Error("the ledger is empty: nothing was paid");
  const paid = ledger.map(({ payment_intent }) => payment_intent);
  narrator.claim(
    `the ledger has exactly one refund of each of the ${ORDERS.length} orders, the first of the amount that was approved`,
    paid.toSorted().join() === ORDERS.toSorted().join() && isApproved(row, approval.args),
  );
  const posts = counts.filter(({ method }) => method === "POST");
  narrator.claim(
    "the sandbox was asked to pay once for each, and looked up once for each of the two calls whose worker was killed",
    posts.length === ORDERS.length && posts.every(({ count }) => count === 1) && sum(counts, "GET") === KILLED_CALLS,
  );
  narrator.claim(
    "there find_order and quote_refund have run once each: what was done before the hold was not done again",
    times("find_order") === 1 && times("quote_refund") === 1,
  );
  narrator.claim(
    `${claimants.size} processes worked on the first run, one after the other; two were killed`,
    claimants.size === CLAIMS,
  );
  return ledger;
}

function rowOf(entry: TimelineEntry, who: string): readonly string[] {
  const { what, side } = tell(entry);
  return [clock(entry.at), who, side, what];
}

function countRow({ method, path, idempotency_key, count }: RequestCount): readonly string[] {
  return [String(count), `${method} ${path}`, idempotency_key ?? "none (a look-up)"];
}

function sum(counts: readonly RequestCount[], method: string): number {
  return counts.filter((it) => it.method === method).reduce((total, { count }) => total + count, 0);
}

function isApproved(row: LedgerRow, args: unknown): boolean {
  if (typeof args !== "object" || args === null || !("amount_minor" in args) || !("currency" in args)) return false;
  return String(row.amount) === args.amount_minor && row.currency === args.currency;
}

/** Time of day with milliseconds, in this machine's time zone. */
function clock(iso: string): string {
  const at = new Date(iso);
  return `${timeOfDay(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `   ${cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()}\n`;
  return `${pc.dim(line(head))}${rows.map(line).join("")}`;
}
