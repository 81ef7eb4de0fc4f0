import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  APPROVAL_STATES,
  type ApprovalRule,
  applyChange,
  approversAt,
  DECISIONS,
  type DecidableRequest,
  escalated,
  type GivenDecision,
  holdOf,
  type Judgement,
  judgeDecision,
  type PendingRequest,
  passDeadlines,
  type RecordedDecision,
} from "../src/approval.ts";
import { aDecidable, ESCALATION, NOW_MS, RULE } from "./builders.ts";

/** People, with the roles that they have all the time. */
const PEOPLE: Readonly<Record<string, readonly string[]>> = {
  "user:ann": ["manager"],
  "user:bob": [],
  "user:mia": ["manager"],
  "user:max": ["manager", "director"],
  "user:dan": ["director"],
  "user:eve": ["board"],
  "user:tom": ["clerk"],
};
const FOUR_EYES = ["approve", "approve_with_edits", "respond"];

const rule: fc.Arbitrary<ApprovalRule> = fc.record({
  rule: fc.constant("refund_limit"),
  approvers: fc.constant(RULE.approvers),
  quorum: fc.integer({ min: 1, max: 3 }),
  veto: fc.boolean(),
  fourEyes: fc.boolean(),
  decisions: fc.subarray([...DECISIONS], { minLength: 1 }),
  answerSchema: fc.constant(null),
  deadlineMs: fc.integer({ min: 1, max: 1_000 }),
  onDeadline: fc.constantFrom("reject", "abort", "operator", "escalate", "extend"),
  remindAfterMs: fc.constant([]),
  escalation: fc.constantFrom([], ESCALATION.slice(0, 1), [...ESCALATION]),
  validForMs: fc.constant(1_000),
});

const decision: fc.Arbitrary<GivenDecision> = fc
  .record({
    // Approvals often, since the rest ends the request.
    kind: fc.oneof({ weight: 6, arbitrary: fc.constant("approve" as const) }, fc.constantFrom(...DECISIONS)),
    by: fc.constantFrom(...Object.keys(PEOPLE)),
    argsHash: fc.oneof({ weight: 6, arbitrary: fc.constant("hash_1") }, fc.constant("hash_2")),
    payload: fc.constantFrom(null, "hash_3", { answer: 1 }),
  })
  .map((given) => ({ ...given, roles: PEOPLE[given.by] ?? [] }));

const request: fc.Arbitrary<DecidableRequest> = fc.tuple(rule, fc.nat(2)).map(([terms, level]) =>
  aDecidable({
    terms,
    level: Math.min(level, terms.escalation.length),
    excluded: terms.fourEyes ? ["user:ann"] : [],
  }),
);

interface Told {
  readonly before: DecidableRequest;
  readonly given: GivenDecision;
  readonly judgement: Judgement;
  readonly after: DecidableRequest;
}

/** The request after a decision, as whoever stores it has it. */
function stored(before: DecidableRequest, given: GivenDecision, judgement: Judgement): DecidableRequest {
  if (!("become" in judgement)) return before;
  const { kind, by, payload } = given;
  const decided: readonly RecordedDecision[] = [...before.decided, { by, kind, level: before.level, payload }];
  const change = kind === "escalate" ? escalated(before, NOW_MS) : null;
  const [moved = before] = change === null ? [] : applyChange(before, change);
  return { ...before, ...moved, state: judgement.become, decided };
}

function tell(start: DecidableRequest, decisions: readonly GivenDecision[]): readonly Told[] {
  let before = start;
  return decisions.map((given) => {
    const judgement = judgeDecision(before, given);
    const told = { before, given, judgement, after: stored(before, given, judgement) };
    before = told.after;
    return told;
  });
}

function isEligible({ terms, level }: DecidableRequest, by: string): boolean {
  const { roles, users } = approversAt(terms, level);
  return users.includes(by) || roles.some((role) => PEOPLE[by]?.includes(role));
}

function expectReleasedBy(request: DecidableRequest): void {
  const { terms, decided, excluded } = request;
  const here = decided.filter(({ level }) => level === request.level);
  const approvers = new Set(here.flatMap(({ by, kind }) => (kind === "approve" ? [by] : [])));
  expect(approvers.size).toBeGreaterThanOrEqual(terms.quorum);
  expect([...approvers].filter((by) => !isEligible(request, by) || excluded.includes(by))).toEqual([]);
  const isRejection = ({ kind }: RecordedDecision) => kind.startsWith("reject");
  if (terms.veto) expect(decided.filter(isRejection)).toEqual([]);
  expect(here.filter(isRejection).length).toBeLessThan(terms.quorum);
}

const told = fc.tuple(request, fc.array(decision, { maxLength: 14 })).map(([start, given]) => tell(start, given));

/** Whether it comes about often enough in the stories told that a claim about it says something. */
function share(all: (each: Told) => boolean): number {
  const stories = fc.sample(told, { seed: 7, numRuns: 500 });
  return stories.filter((story) => story.some(all)).length / stories.length;
}

describe("whatever is decided, by whomever, in whatever order", () => {
  test("a request is approved only by a quorum of different people of one level who may, and against no rejection", () => {
    fc.assert(
      fc.property(told, (story) => {
        for (const { before, after } of story)
          if (before.state === "pending" && after.state === "approved") expectReleasedBy(after);
      }),
    );
    expect(share(({ after }) => after.state === "approved" && after.terms.quorum > 1)).toBeGreaterThan(0.02);
    expect(share(({ after }) => after.state === "approved" && after.level > 0)).toBeGreaterThan(0.02);
  });

  test("a request never leaves a final state, and nobody is recorded on it any more", () => {
    fc.assert(
      fc.property(told, (story) => {
        for (const { before, after } of story) if (before.state !== "pending") expect(after).toBe(before);
      }),
    );
    for (const state of APPROVAL_STATES.filter((each) => each !== "pending")) {
      fc.assert(
        fc.property(request, fc.array(decision), (start, given) => {
          for (const { judgement } of tell({ ...start, state }, given)) expect(judgement).toHaveProperty("refuse");
        }),
      );
    }
  });

  test("an identical repeat is answered as the first was, also after the end", () => {
    fc.assert(
      fc.property(told, fc.nat(), (story, pick) => {
        const taken = story.filter(({ judgement }) => "become" in judgement);
        const last = story.at(-1);
        const one = taken[pick % Math.max(1, taken.length)];
        fc.pre(one !== undefined && last !== undefined);
        if (one === undefined || last === undefined) return;
        expect(judgeDecision(one.after, one.given)).toEqual({ repeated: true });
        // Whoever is asked at a later level as well decides there anew.
        const anew = last.after.level !== one.before.level && isEligible(last.after, one.given.by);
        if (!anew || one.given.kind === "escalate")
          expect(judgeDecision(last.after, one.given)).toEqual({ repeated: true });
      }),
    );
  });

  test("nobody's second, different decision about the same question is taken", () => {
    fc.assert(
      fc.property(told, (story) => {
        for (const { before, given, judgement } of story) {
          const mine = before.decided.filter(({ by, level }) => by === given.by && level === before.level);
          if (mine.length > 0) expect(judgement).not.toHaveProperty("become");
        }
      }),
    );
  });

  test("nobody decides about what was not shown to them, or what they were not asked, or releases their own request", () => {
    fc.assert(
      fc.property(told, (story) => {
        for (const { before, given, judgement } of story) {
          const notShown = given.argsHash !== before.argsHash;
          const notAsked = !isEligible(before, given.by) && given.by !== before.requester;
          const own = before.excluded.includes(given.by) && FOUR_EYES.includes(given.kind);
          if (notShown || notAsked || own) expect(judgement).not.toHaveProperty("become");
          if (notShown) expect(judgement).toHaveProperty("refuse");
        }
      }),
    );
  });
});

const pending: fc.Arbitrary<readonly PendingRequest[]> = fc
  .array(
    fc.record({ terms: rule, level: fc.nat(2), extended: fc.boolean(), dueInMs: fc.integer({ min: -3, max: 3 }) }),
    {
      maxLength: 5,
    },
  )
  .map((requests) =>
    requests.map(({ terms, level, extended, dueInMs }, index) => ({
      id: `approval_${index}`,
      callId: `call_${index}`,
      terms,
      level: Math.min(level, terms.escalation.length),
      extended,
      deadlineMs: NOW_MS + dueInMs,
    })),
  );

/** What is to follow for a request that is due: it goes on, it is over, or it ends the hold. */
function whatItSays({ terms, level, extended }: PendingRequest): "goes on" | "reject" | "operator" | "abort" {
  const { onDeadline, escalation } = terms;
  if (onDeadline === "extend") return extended ? "reject" : "goes on";
  if (onDeadline === "escalate") return level < escalation.length ? "goes on" : "operator";
  return onDeadline;
}

describe("whatever is due", () => {
  test("is not pending after its deadline without a later one, and the hold is over exactly when nothing is pending", () => {
    fc.assert(
      fc.property(pending, (before) => {
        const { changes, remaining } = passDeadlines(before, NOW_MS);
        const after = before.flatMap((request) => {
          const change = changes.find(({ id }) => id === request.id);
          return change === undefined ? [request] : applyChange(request, change);
        });
        expect(after.filter(({ deadlineMs }) => deadlineMs <= NOW_MS)).toEqual([]);
        expect(remaining).toEqual(after.length === 0 ? null : holdOf(after));
      }),
    );
  });

  test("changes nothing that is not due, unless the hold ends for all", () => {
    fc.assert(
      fc.property(pending, (before) => {
        const { changes, onDeadline } = passDeadlines(before, NOW_MS);
        const due = before.filter(({ deadlineMs }) => deadlineMs <= NOW_MS);
        const ends = onDeadline !== "reject";
        expect(changes.map(({ id }) => id)).toEqual((ends ? before : due).map(({ id }) => id));
        expect(changes.every(({ become }) => become !== "pending") || !ends).toBe(true);
      }),
    );
  });

  test("ends as it says itself, also where another one ends the hold for all", () => {
    fc.assert(
      fc.property(pending, (before) => {
        const { changes, onDeadline, subject } = passDeadlines(before, NOW_MS);
        const says = before.map((request) => (request.deadlineMs > NOW_MS ? "waits" : whatItSays(request)));
        const first = says.indexOf(says.includes("abort") ? "abort" : "operator");
        expect(onDeadline).toBe(says[first] ?? "reject");
        expect(subject).toBe(before[first]?.callId ?? null);
        const ending = onDeadline === "abort" ? ["reject", "operator", "abort"] : ["reject"];
        const over = changes.flatMap(({ id, become }) => (become === "expired" ? [id] : []));
        expect(over).toEqual(before.flatMap(({ id }, index) => (ending.includes(says[index] ?? "") ? [id] : [])));
      }),
    );
  });

  test("never passes the same request on for ever", () => {
    fc.assert(
      fc.property(pending, (start) => {
        let left = start;
        for (let pass = 0; pass < 5 && left.length > 0; pass += 1) {
          const atMs = Math.max(...left.map(({ deadlineMs }) => deadlineMs));
          const { changes } = passDeadlines(left, atMs);
          const changed = new Map(changes.map((change) => [change.id, change]));
          left = left.flatMap((request) => {
            const change = changed.get(request.id);
            return change === undefined ? [request] : applyChange(request, change);
          });
        }
        expect(left).toEqual([]);
      }),
    );
  });
});
