// Everybody outside: who submits, says something, decides, stops, and takes runs from their workers.

import type { JsonValue, StepBody } from "@holdpoint/core";
import {
  type ActResult,
  createSession,
  type DecideResult,
  decideApproval,
  decideAsOperator,
  grantRoles,
  loadRun,
  newId,
  type Run,
  recordFact,
  requestCancel,
  requestPause,
  resumeRun,
  submitRun,
  takeOverRun,
} from "@holdpoint/store";
import { AGENT, ALICE, MANAGER, OPERATOR } from "../../packages/store/test/a-run.ts";
import { type Ledger, note, noteSeen, type Sent } from "./ledger.ts";
import type { MortalStore } from "./mortal-store.ts";
import type { Names } from "./next-work.ts";
import { expectFailure, proofOf } from "./worker.ts";

export interface People {
  openSession(): Promise<void>;
  submit(session: number): Promise<void>;
  say(run: Run, kind: "message" | "answer"): Promise<void>;
  cancel(runId: string): Promise<void>;
  pause(run: Run): Promise<void>;
  resume(run: Run): Promise<void>;
  /** A manager decides all that the run asks for; two of them at once, where `twice` says so. */
  decide(run: Run, how: { readonly decision: "approve" | "reject"; readonly twice: boolean }): Promise<void>;
  /** An operator takes the run from whoever has it. */
  takeOver(run: Run): Promise<void>;
  /** An operator says what has become of the run's open effect. */
  markDone(run: Run): Promise<void>;
  /** Changes who may do what: what was planned before does not start. */
  changePolicy(): Promise<void>;
}

/** The people of a sequence, all behind one api process. */
export function openPeople({
  mortal,
  ledger,
  names,
}: {
  readonly mortal: MortalStore;
  readonly ledger: Ledger;
  readonly names: Names;
}): People {
  const { store } = mortal;

  /** Carries out a request, and notes the answer if somebody keeps it. */
  const ask = async <What>(request: () => Promise<ActResult | DecideResult>, sent?: Sent<What, Run>): Promise<void> => {
    const isProof = proofOf(mortal);
    if (sent !== undefined) sent.sends += 1;
    try {
      const answer = await request();
      if ("run" in answer) noteSeen(ledger, answer.run);
      if (answer.result === "accepted") {
        sent?.answers.push({ says: "yes", of: answer.run });
      } else {
        sent?.answers.push(isProof() ? { says: "no", why: answer.result } : { says: "unknown", why: answer.result });
      }
    } catch (error) {
      sent?.answers.push({ says: "unknown", why: "error" });
      expectFailure(ledger, error);
    }
  };

  return {
    async openSession() {
      const { id } = await createSession(store, ALICE.id);
      ledger.sessions.push(id);
    },
    async submit(session) {
      const sessionId = ledger.sessions[session % ledger.sessions.length] ?? "";
      const goal = names("goal");
      const sent = note(ledger.runs, "api", { sessionId, goal });
      const idempotency = { principal: ALICE.id, key: goal, requestHash: goal };
      // Whoever was not told sends the same again, under the same key.
      for (let tries = 0; tries < 3 && sent.answers.at(-1)?.says !== "yes"; tries += 1) {
        sent.sends += 1;
        try {
          const answer = await submitRun(store, { sessionId, agent: AGENT, goal, actor: ALICE, idempotency });
          if (answer.result === "submitted" || answer.result === "repeated") {
            sent.answers.push({ says: "yes", of: answer.run });
            noteSeen(ledger, answer.run);
          } else ledger.wrong.push(`a submission was answered ${answer.result}`);
        } catch (error) {
          sent.answers.push({ says: "unknown", why: "error" });
          expectFailure(ledger, error);
        }
      }
    },
    say(run, kind) {
      const text = names(kind);
      const sent = note(ledger.facts, "api", { runId: run.id, text });
      return ask(() => recordFact(store, { runId: run.id, kind, text, actor: ALICE }), sent);
    },
    cancel(runId) {
      const sent = note(ledger.cancels, "api", runId);
      return ask(() => requestCancel(store, { runId, actor: ALICE, reason: null }), sent);
    },
    pause: (run) => ask(() => requestPause(store, { runId: run.id, actor: OPERATOR })),
    resume: (run) => ask(() => resumeRun(store, { runId: run.id, actor: OPERATOR })),
    async decide(run, { decision, twice }) {
      const loaded = await loadRun(store, run.id).catch((error: unknown) => {
        expectFailure(ledger, error);
        return null;
      });
      const pending = (loaded?.approvals ?? []).filter(({ state }) => state === "pending");
      await Promise.all(
        pending.flatMap(({ id: approvalId, argsHash }) =>
          Array.from({ length: twice ? 2 : 1 }, () => {
            const sent = note(ledger.decisions, MANAGER.id, { approvalId, by: MANAGER.id });
            return ask(
              () => decideApproval(store, { approvalId, decision, argsHash, note: null, actor: MANAGER }),
              sent,
            );
          }),
        ),
      );
    },
    takeOver: (run) => ask(() => takeOverRun(store, { runId: run.id, actor: OPERATOR, reason: "test" })),
    async markDone(run) {
      const loaded = await loadRun(store, run.id).catch((error: unknown) => {
        expectFailure(ledger, error);
        return null;
      });
      const [attempt] = loaded?.openAttempts ?? [];
      if (attempt === undefined) return;
      const result: JsonValue = names("marked");
      const body: StepBody = { kind: "tool_result", callId: attempt.callId, result: "succeeded", output: result };
      ledger.foreign.push({ runId: run.id, body });
      const decision = { runId: run.id, choice: "mark_done", actor: OPERATOR, reason: "seen", result } as const;
      await ask(() => decideAsOperator(store, { ...decision, attemptIds: [attempt.id] }));
    },
    changePolicy: () =>
      grantRoles(store, { grants: [{ user: newId(), role: "manager" }], by: "test" }).catch((error: unknown) =>
        expectFailure(ledger, error),
      ),
  };
}
