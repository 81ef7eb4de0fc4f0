import type { TimelineEntry } from "@holdpoint/protocol";
import pc from "picocolors";
import { whoDid } from "./follow.ts";
import { money, tell, timeOfDay } from "./in-words.ts";
import type { LedgerRow, RequestCount } from "./sandbox-admin.ts";
import type { Stage } from "./stage.ts";
import type { Told } from "./story.ts";

const REFUNDS = "/v1/refunds";
const CLAIMS = 3;

/** The run's timeline, the sandbox's ledger and its request counts, and the claims about them. */
export async function closeWithReport(stage: Stage, { run, follower, approval }: Told): Promise<LedgerRow> {
  const { people, crew, sandbox, narrator, signal } = stage;
  narrator.chapter("What is on record");
  const timeline = await follower.catchUp();
  const rows = await Promise.all(
    timeline
      .filter(({ kind }) => kind !== "step")
      .map(async (entry) => rowOf(entry, await whoDid(entry, timeline, crew))),
  );
  narrator.plain(`\n   The run's timeline (${run.id})\n\n${table(["when", "who", "from", "to", "why"], rows)}\n`);

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
  narrator.claim(
    "the ledger has exactly one refund, of the amount that was approved",
    ledger.length === 1 && isApproved(row, approval.args),
  );
  narrator.claim(
    "the sandbox was asked to pay once, and looked up once",
    sum(counts, "POST") === 1 && sum(counts, "GET") === 1,
  );
  narrator.claim(
    "find_order and quote_refund have run once each: what was done before the hold was not done again",
    times("find_order") === 1 && times("quote_refund") === 1,
  );
  narrator.claim(
    `${claimants.size} processes worked on it, one after the other; two were killed`,
    claimants.size === CLAIMS,
  );
  return row;
}

function rowOf(entry: TimelineEntry, who: string): readonly string[] {
  const { what } = tell(entry);
  if (entry.kind === "transition") return [clock(entry.at), who, entry.from ?? "", entry.to, what];
  const status = entry.kind === "refusal" ? entry.status : "";
  return [clock(entry.at), who, status, status, what];
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
