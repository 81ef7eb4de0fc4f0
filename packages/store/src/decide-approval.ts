import type {
  Actor,
  DecisionKind,
  GivenDecision,
  Hold,
  JsonValue,
  Judgement,
  PendingRequest,
  RunEvent,
  RunState,
} from "@holdpoint/core";
import { applyChange, canonicalJson, escalated, holdOf, judgeDecision, presentHold, storable } from "@holdpoint/core";
import { type ActResult, act } from "./act.ts";
import { checkSchema } from "./check-schema.ts";
import type { Store } from "./db.ts";
import { type Edit, editRequest } from "./edit-request.ts";
import { newId } from "./ids.ts";
import type { ApprovalChange, Move, Writes } from "./move.ts";
import { type RequestSeen, readRequest } from "./read-request.ts";
import type { Run } from "./run.ts";
import { writeChange } from "./write-change.ts";

/** What a person decides about a request. */
export interface ApprovalDecision {
  readonly approvalId: string;
  readonly decision: DecisionKind;
  /** The hash of the arguments that the person was shown. */
  readonly argsHash: string;
  /** Told to the model with a rejection. */
  readonly note: string | null;
  readonly actor: Actor;
  /** For `approve_with_edits`: the arguments that are to run, all of them. */
  readonly args?: JsonValue;
  /** For `respond`: what the model is given as the call's result. */
  readonly answer?: JsonValue;
}

export type DecideResult = ActResult<
  /** The same person decided the same before: the first answer again. */
  | { readonly result: "repeated"; readonly run: Run }
  /** The edited arguments, or the answer, are not what the call takes. */
  | { readonly result: "invalid"; readonly problem: string; readonly run: Run }
>;

/**
 * Decides an approval request. Authority comes from the present assignments. The first decision of a person counts; its
 * repeat is answered as the first was, anything else is refused with who decided what (see `findApproval`). A decision
 * after the deadline is refused by the statement itself, whether the sweep has come by or not.
 */
export async function decideApproval(store: Store, decision: ApprovalDecision): Promise<DecideResult> {
  const read = () => readRequest(store, { approvalId: decision.approvalId, by: decision.actor.id });
  const first = await read();
  if (first === null) return { result: "not_found" };
  const asked = { runId: first.run.id, event: "FactArrived" as const, actor: decision.actor, read, seen: first };
  return act<RequestSeen, DecideResult>(store, asked, (seen) => {
    const { run } = seen;
    const prepared = prepare(seen, decision);
    if ("problem" in prepared && !isRefused(seen, decision)) {
      return { answer: { result: "invalid", problem: prepared.problem, run } };
    }
    const { edit = null, payload = null } = "problem" in prepared ? {} : prepared;
    const judged = judgeDecision(seen.request, givenOf(seen, decision, payload));
    if ("refuse" in judged) return judged;
    if ("repeated" in judged) return { answer: { result: "repeated", run } };
    if (edit?.verdict === "denied") return { refuse: "edit_denied" };
    return moveOf(seen, decision, { judged, edit, payload });
  });
}

type Decided = Extract<Judgement, { readonly become: unknown }>;

interface Prepared {
  readonly edit?: Edit;
  readonly payload?: JsonValue;
}

/** An answer goes into the history as it is; what a tool gives beyond this is cut. */
const ANSWER_LIMIT_BYTES = 32_768;

/** What the decision brings with it, checked. */
function prepare(
  seen: RequestSeen,
  { decision, args, answer }: ApprovalDecision,
): Prepared | { readonly problem: string } {
  if (decision === "respond") {
    if (answer === undefined) return { problem: "answer: give what the agent is to be told" };
    const sizeBytes = Buffer.byteLength(canonicalJson(answer));
    if (sizeBytes > ANSWER_LIMIT_BYTES) {
      return { problem: `answer: it has ${sizeBytes} bytes as JSON; at most ${ANSWER_LIMIT_BYTES} are kept whole` };
    }
    const { answerSchema } = seen.request.terms;
    const problem = answerSchema === null ? null : checkSchema(answerSchema, answer).problem;
    // As it will be on record, so that the same answer again is known for that.
    return problem === null ? { payload: storable(answer) } : { problem: `answer: ${problem}` };
  }
  if (decision !== "approve_with_edits") return {};
  if (args === undefined) return { problem: "args: give the arguments that are to run, all of them" };
  const edit = editRequest(seen, args);
  return "problem" in edit ? edit : { edit, payload: { argsHash: edit.argsHash } };
}

/** Whether this decision is refused whatever it brings with it: only who may decide is told what is wrong with that. */
function isRefused(seen: RequestSeen, decision: ApprovalDecision): boolean {
  return "refuse" in judgeDecision(seen.request, givenOf(seen, decision, null));
}

function givenOf(
  { roles }: RequestSeen,
  { decision, actor, argsHash }: ApprovalDecision,
  payload: JsonValue,
): GivenDecision {
  return { kind: decision, by: actor.id, roles, argsHash, payload };
}

interface Outcome {
  readonly judged: Decided;
  readonly edit: Edit | null;
  readonly payload: JsonValue;
}

function moveOf(seen: RequestSeen, decision: ApprovalDecision, { judged, edit, payload }: Outcome): Move {
  const { run, request } = seen;
  const { actor, argsHash, note } = decision;
  const editedId = newId();
  const { change, left } = changeOf(seen, decision, judged);
  const pending = [...seen.others, ...left, ...editedPending(seen, edit, editedId)];
  const record = { approvalId: request.id, decision: decision.decision, argsHash, note, level: request.level, payload };
  const decisions = [{ id: newId(), ...record }];
  return {
    run,
    events: [eventOf(run.state, { hold: pending.length === 0 ? null : holdOf(pending), aborts: judged.aborts })],
    actor,
    reason: `${decision.decision} ${seen.tool}`,
    notAfterMs: request.deadlineMs,
    writes: {
      approvals: [change],
      decisions,
      ...(edit === null ? {} : editWrites(seen, decision, { edit, id: editedId, decisions })),
    },
  };
}

function eventOf(
  state: RunState,
  { hold, aborts }: { readonly hold: Hold | null; readonly aborts: boolean },
): Extract<RunEvent, { type: "FactArrived" }> {
  const event = { type: "FactArrived", fact: "decision", aborts } as const;
  if (presentHold(state)?.kind !== "approval") return { ...event, completesHold: false };
  return hold === null ? { ...event, completesHold: true } : { ...event, completesHold: false, hold };
}

/** What becomes of the request itself, and the request that is still pending after it. */
function changeOf(
  { request, nowMs }: RequestSeen,
  { decision, actor, note, answer }: ApprovalDecision,
  { become }: Decided,
): { readonly change: ApprovalChange; readonly left: readonly PendingRequest[] } {
  const { id, level, decided } = request;
  const before = decided.filter((each) => each.level === level && each.kind === "approve").length;
  const given = before + (decision === "approve" ? 1 : 0);
  if (become !== "pending") {
    const change = { id, state: become, decidedBy: actor.id, note };
    if (become === "answered") return { change: { ...change, answer: answer ?? null }, left: [] };
    return { change: become === "approved" ? { ...change, given } : change, left: [] };
  }
  const next = decision === "escalate" ? escalated(request, nowMs) : null;
  if (next !== null) return { change: writeChange(request, next), left: applyChange(request, next) };
  return { change: { id, state: become, given }, left: [request] };
}

/** The edited request, where others still have to approve it. */
function editedPending({ request, nowMs }: RequestSeen, edit: Edit | null, id: string): readonly PendingRequest[] {
  if (edit === null || edit.verdict === "denied" || suffices(edit)) return [];
  const { terms } = edit;
  return [{ id, callId: request.callId, terms, level: 0, extended: false, deadlineMs: nowMs + terms.deadlineMs }];
}

function suffices({ terms, editorMayApprove }: Edit): boolean {
  return editorMayApprove && terms.quorum <= 1;
}

function editWrites(
  seen: RequestSeen,
  { actor, note }: ApprovalDecision,
  {
    edit,
    id,
    decisions,
  }: { readonly edit: Edit; readonly id: string; readonly decisions: NonNullable<Writes["decisions"]> },
): Writes {
  const { args, argsHash, terms, excluded, request, editorMayApprove } = edit;
  const { request: before, tool } = seen;
  const asked = { id, callId: before.callId, tool, args, argsHash, terms, request, excluded };
  const approval = editorMayApprove ? { by: actor.id, note, suffices: suffices(edit) } : null;
  // Whoever edits approves what it has become, as far as the rules let them.
  const given = { id: newId(), approvalId: id, decision: "approve", argsHash, note, level: 0, payload: null } as const;
  return {
    requests: [{ ...asked, editedBy: actor.id, approval }],
    decisions: approval === null ? decisions : [...decisions, given],
  };
}
