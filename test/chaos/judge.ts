import { buildPrompt } from "../../packages/runtime/src/prompt.ts";
import { type LoadedRun, loadRun, type Violation } from "../../packages/store/src/index.ts";
import type { Stage } from "./stage.ts";

/** What a play came to. */
export interface Judgement {
  readonly refunds: number;
  readonly notifications: number;
  /** What is not as it must be, in words; empty for a good play. */
  readonly wrong: readonly string[];
  /** The run's transitions, for whoever looks into a bad play. */
  readonly history: readonly string[];
}

type ModelMessage = ReturnType<typeof buildPrompt>[number];

const CALLS = ["find_order", "quote_refund", "send_refund", "notify_customer"];

/**
 * Judges the world after a play: what happened outside, the run, its history and its conversation. The conversation by
 * rules of its own: the product's check has passed each request already, and would find nothing here.
 */
export async function judge(stage: Stage, violations: readonly Violation[]): Promise<Judgement> {
  const { store, runId } = stage;
  const loaded = await loadRun(store, runId);
  if (loaded === null) throw new Error("the run is gone");
  const { rows: transitions } = await store.pool.query<Transition>(
    "select seq, from_status, to_status, event, reason from holdpoint.transitions where run_id = $1 order by seq",
    [runId],
  );
  const outside = await countEffects(stage);
  const expected = { status: "completed", outcome: { kind: "succeeded" }, refunds: 1, notifications: 1, records: 1 };
  const { status, outcome } = loaded.run.state;
  const wrong = [
    ...differences({ status, outcome, ...outside }, expected),
    ...violations.map(({ rule }) => `violated: ${rule}`),
    ...historyGaps(loaded, transitions),
    ...wrongCalls(loaded),
    ...wrongApprovals(loaded),
    ...wrongConversation(loaded),
  ];
  const history = transitions.map(({ event, to_status, reason }) => `${event} → ${to_status} (${reason ?? ""})`);
  return { ...outside, wrong, history };
}

interface Transition {
  readonly seq: number;
  readonly from_status: string | null;
  readonly to_status: string;
  readonly event: string;
  readonly reason: string | null;
}

/** The refunds that moved money at the provider, the messages that customers got, and the refunds in the shop's books. */
async function countEffects({ store, sandboxUrl, order }: Stage) {
  const ledger = await fetch(new URL("/sandbox/ledger", sandboxUrl));
  const { rows } = (await ledger.json()) as { readonly rows: readonly unknown[] }; // the sandbox of the same repository
  const count = async (table: string): Promise<number> => {
    const found = await store.pool.query(`select from refund_desk.${table} where order_id = $1`, [order.id]);
    return found.rowCount ?? 0;
  };
  return { refunds: rows.length, notifications: await count("notifications"), records: await count("refunds") };
}

function differences(seen: Readonly<Record<string, unknown>>, expected: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(expected).flatMap(([name, value]) => {
    const [is, must] = [JSON.stringify(seen[name]), JSON.stringify(value)];
    return is === must ? [] : [`${name} is ${is} and not ${must}`];
  });
}

/** Every change of the run has its number and begins where the one before ended; so do the steps. */
function historyGaps({ run, steps }: LoadedRun, transitions: readonly Transition[]): string[] {
  const numbers = transitions.map(({ seq }) => seq);
  const joins = transitions.every(
    ({ from_status }, index) => from_status === (transitions[index - 1]?.to_status ?? null),
  );
  return [
    ...(isCounted(numbers, run.version) ? [] : [`transitions ${numbers.join()} of version ${run.version}`]),
    ...(joins ? [] : ["transitions do not join"]),
    ...(isCounted(
      steps.map(({ seq }) => seq),
      run.stepSeq,
    )
      ? []
      : [`steps have a gap before ${run.stepSeq}`]),
  ];
}

function isCounted(numbers: readonly number[], last: number): boolean {
  return numbers.length === last && numbers.every((number, index) => number === index + 1);
}

/** The four calls in their order, each with one result, which says that it succeeded. */
function wrongCalls({ calls, steps, openAttempts }: LoadedRun): string[] {
  const results = steps.flatMap(({ body }) => (body.kind === "tool_result" ? [body] : []));
  const told = results.map(({ callId, result }) => `${calls.find(({ id }) => id === callId)?.tool} ${result}`);
  const expected = CALLS.map((tool) => `${tool} succeeded`);
  return [
    ...differences({ calls: calls.map(({ tool }) => tool), results: told }, { calls: CALLS, results: expected }),
    ...openAttempts.map(({ number }) => `attempt ${number} is open`),
  ];
}

/** A manager was asked once, and what was approved was spent. */
function wrongApprovals({ approvals }: LoadedRun): string[] {
  return differences({ approvals: approvals.map(({ state }) => state) }, { approvals: ["spent"] });
}

/** Whether a provider would take the conversation: every call answered once, in order, directly behind its reply. */
function wrongConversation(loaded: LoadedRun): string[] {
  let messages: readonly ModelMessage[];
  try {
    messages = buildPrompt(loaded);
  } catch (error) {
    return [String(error)];
  }
  const unanswered = messages.flatMap((message, index) => {
    const asked = callIdsOf(message);
    const answered = resultIdsOf(messages[index + 1]);
    return message.role !== "assistant" || asked.join() === answered.join() ? [] : [`calls ${asked} got ${answered}`];
  });
  const stray = messages.filter(({ role }, index) => role === "tool" && messages[index - 1]?.role !== "assistant");
  const asked = messages.flatMap(callIdsOf);
  // The prompt of a run that has ended would ask the model to go on behind its last reply.
  const told = messages.slice(0, messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const roles = told.map(({ role }) => role).join(" ");
  return [
    ...unanswered,
    ...stray.map(() => "a result follows no reply"),
    ...(new Set(asked).size === asked.length ? [] : ["two calls have one id"]),
    ...differences({ roles }, { roles: `user ${"assistant tool ".repeat(CALLS.length)}assistant` }),
  ];
}

function callIdsOf(message: ModelMessage): readonly string[] {
  if (message.role !== "assistant" || typeof message.content === "string") return [];
  return message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []));
}

function resultIdsOf(message: ModelMessage | undefined): readonly string[] {
  if (message?.role !== "tool") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : []));
}
