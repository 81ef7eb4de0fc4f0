import { describe, expect, test } from "vitest";
import type { ActorKind, RunEvent } from "../src/event.ts";
import { ACTOR_KINDS, mayRaise, OPERATOR_CHOICES } from "../src/event.ts";
import { cellFor, reduce } from "../src/reduce.ts";
import type { OnDeadline, RunState } from "../src/state.ts";
import { isTerminal, isWaiting, STATUSES, type Status } from "../src/status.ts";
import {
  ALL_EVENTS,
  deadlinePassed,
  decided,
  ESCALATED_HOLD,
  effectSettled,
  factArrived,
  operatorDecided,
  raiserOf,
} from "./all-events.ts";
import { anUnknownAtOperator, aRun, HOLDS, SUCCEEDED } from "./builders.ts";

// The table of the design, written down by hand. A word is the status that follows, `=` recorded without a move,
// `.` ignored, `!rule` refused. "Waiting" is input, approval and dependency; where they differ there are three words.

type Row = readonly [event: RunEvent, ...cells: readonly string[]];

const [SUB, NO, END] = ["!already_submitted", "!not_owned", "!run_ended"];
const [OFF, SHUT, OPEN, NPAU] = ["!choice_not_offered", "!effect_not_open", "!effect_unsettled", "!not_paused"];
const [OP, UNK, STOP, GONE] = ["waiting_operator", "outcome_unknown", "cancelling", "cancelled"];

/** Runs with no open attempt; one that is being cancelled still has its worker. */
// biome-ignore format: read it as a matrix
const AT_EASE: readonly Row[] = [
  //                                                  queued     running             waiting   operator   retrying   paused    lost       cancelling  ended
  [{ type: "Submitted" },                             SUB,       SUB,                SUB,      SUB,       SUB,       SUB,      SUB,       SUB,        SUB],
  [{ type: "Claimed", owner: "worker_2" },            "running", ".",                ".",      ".",       ".",       ".",      ".",       ".",        "."],
  [{ type: "Held", hold: HOLDS.input },               NO,        "waiting_input",    NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "Held", hold: HOLDS.approval },            NO,        "waiting_approval", NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "Held", hold: HOLDS.dependency },          NO,        "waiting_dependency", NO,     NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "Held", hold: HOLDS.operator },            NO,        OP,                 NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "Released", retryAt: null },               NO,        "queued",           NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "Released", retryAt: { inMs: 5_000 } },    NO,        "retrying",         NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [effectSettled("owner", false),                     "=",       "=",                "=",      "=",       "=",       "=",      "=",       "=",        "="],
  [effectSettled("late_evidence", false),             "=",       "=",                "=",      "=",       "=",       "=",      "=",       "=",        "="],
  [effectSettled("person", false),                    "=",       "=",                "=",      "=",       "=",       "=",      "=",       "=",        "="],
  [ended("completed"),                                NO,        "completed",        NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [ended("failed"),                                   NO,        "failed",           NO,       NO,        NO,        NO,       NO,        GONE,       END],
  [{ type: "OwnerGone", reason: "lease_expired" },    ".",       "lost",             ".",      ".",       ".",       ".",      ".",       GONE,       "."],
  [{ type: "Recovered" },                             ".",       ".",                ".",      ".",       ".",       ".",      "queued",  ".",        "."],
  [deadlinePassed(null),                              OP,        ".",                `queued queued ${OP}`, "=", ".", "=",     OP,        GONE,       "."],
  ...deadlines(["reject", "extend", "continue"],      OP,        ".",                "queued", "=",       ".",       "=",      OP,        GONE,       "."),
  ...deadlines(["operator"],                          OP,        ".",                OP,       "=",       ".",       "=",      OP,        GONE,       "."),
  ...deadlines(["escalate"],                          OP,        ".",                OP,       "=",       ".",       "=",      OP,        "=",        "."),
  ...deadlines(["abort"],                             OP,        ".",                GONE,     "=",       ".",       "=",      OP,        GONE,       "."),
  [deadlinePassed(null, "operator", "call_2"),        OP,        ".",                OP,       "=",       ".",       "=",      OP,        GONE,       "."],
  [vanished(),                                        OP,        ".",                `queued queued ${OP}`, "=", ".", "=",     OP,        GONE,       "."],
  [deadlinePassed(ESCALATED_HOLD),                    OP,        ".",                "=",      "=",       ".",       "=",      OP,        GONE,       "."],
  [{ type: "RetryDue" },                              ".",       ".",                ".",      ".",       "queued",  ".",      ".",       ".",        "."],
  ...facts(true,                                      "=",       "=",                "queued", "=",       "=",       "=",      "=",       "=",        END).filter(([event]) => !isChild(event)),
  [factArrived("child", true),                        "=",       "=",                "queued", "queued",  "=",       "=",      "=",       "=",        END],
  ...facts(false,                                     "=",       "=",                "=",      "=",       "=",       "=",      "=",       "=",        END),
  [decided({ aborts: true }),                         "=",       "=",                GONE,     "=",       "=",       GONE,     "=",       "=",        END],
  [decided({ hold: ESCALATED_HOLD }),                 "=",       "=",                "=",      "=",       "=",       "=",      "=",       "=",        END],
  [operatorDecided("retry"),                          OFF,       OFF,                OFF,      "queued",  OFF,       OFF,      OFF,       OFF,        END],
  [operatorDecided("skip"),                           OFF,       OFF,                OFF,      "queued",  OFF,       OFF,      OFF,       OFF,        END],
  [operatorDecided("abort"),                          OFF,       OFF,                OFF,      GONE,      OFF,       OFF,      OFF,       OFF,        END],
  [operatorDecided("mark_done"),                      SHUT,      OFF,               SHUT,     SHUT,      SHUT,      SHUT,     OPEN,      OFF,        END],
  [operatorDecided("not_established"),                SHUT,      OFF,               SHUT,     SHUT,      SHUT,      SHUT,     OPEN,      SHUT,       END],
  [operatorDecided("retry_now"),                      OFF,       OFF,                OFF,      OFF,       "queued",  OFF,      OFF,       OFF,        END],
  [operatorDecided("terminate"),                      OFF,       GONE,               GONE,     GONE,      GONE,      GONE,     GONE,      GONE,       END],
  [{ type: "CancelRequested", reason: "too_late" },   GONE,      STOP,               GONE,     GONE,      GONE,      GONE,     STOP,      ".",        END],
  [{ type: "PauseRequested" },                        "paused",  "=",                "paused", "paused",  "paused",  ".",      OPEN,      OPEN,       END],
  [{ type: "Resumed" },                               NPAU,      "=",                NPAU,     NPAU,      NPAU,      "queued", "=",       NPAU,       END],
];

/** Runs with an open attempt; in `outcome_unknown` and `cancelling` somebody is at work on it. */
// biome-ignore format: read it as a matrix
const UNSETTLED: readonly Row[] = [
  //                                                         running   operator          unknown   lost   cancelling
  [{ type: "Submitted" },                                    SUB,      SUB,              SUB,       SUB,  SUB],
  [{ type: "Claimed", owner: "worker_2" },                   ".",      ".",              ".",       ".",  "."],
  [{ type: "Held", hold: HOLDS.input },                      UNK,      NO,               NO,        NO,   "="],
  [{ type: "Held", hold: HOLDS.approval },                   UNK,      NO,               NO,        NO,   "="],
  [{ type: "Held", hold: HOLDS.dependency },                 UNK,      NO,               NO,        NO,   "="],
  [{ type: "Held", hold: HOLDS.operator },                   UNK,      NO,               NO,        NO,   "="],
  [{ type: "Released", retryAt: null },                      UNK,      NO,               "=",       NO,   "="],
  [{ type: "Released", retryAt: { inMs: 5_000 } },           UNK,      NO,               "=",       NO,   "="],
  [{ type: "EffectUnknown", nextLookUp: { inMs: 2_000 }, lookUpsEnd: { inMs: 50_000 } }, UNK, NO, "=", NO, "="],
  [{ type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null }, OP,  NO,               OP,        NO,   "="],
  [effectSettled("owner", true),                             "=",      "queued",         "running", "=",  GONE],
  [effectSettled("late_evidence", true),                     "=",      "queued",         "queued",  "=",  "="],
  [effectSettled("person", true),                            "=",      "queued",         "queued",  "=",  "="],
  [effectSettled("owner", false),                            "=",      "=",              "=",       "=",  "="],
  [effectSettled("late_evidence", false),                    "=",      "=",              "=",       "=",  "="],
  [effectSettled("person", false),                           "=",      "=",              "=",       "=",  "="],
  [ended("completed"),                                       UNK,      NO,               NO,        NO,   "="],
  [ended("failed"),                                          UNK,      NO,               NO,        NO,   "="],
  [{ type: "OwnerGone", reason: "lease_expired" },           "lost",   ".",              "=",       ".",  "="],
  [{ type: "Recovered" },                                    ".",      ".",              ".",       UNK,  "."],
  [deadlinePassed(null),                                     ".",      "=",              OP,        UNK,  "="],
  ...deadlines(["reject", "extend", "continue", "operator", "escalate", "abort"], ".", "=", OP,     UNK,  "="),
  [deadlinePassed(null, "operator", "call_2"),               ".",      "=",              OP,        UNK,  "="],
  [vanished(),                                               ".",      "=",              OP,        UNK,  "="],
  [deadlinePassed(ESCALATED_HOLD),                           ".",      "=",              OP,        UNK,  "="],
  [{ type: "RetryDue" },                                     ".",      ".",              ".",       ".",  "."],
  ...facts(true,                                             "=",      "=",              "=",       "=",  "="),
  ...facts(false,                                            "=",      "=",              "=",       "=",  "="),
  [decided({ aborts: true }),                                "=",      "=",              "=",       "=",  "="],
  [decided({ hold: ESCALATED_HOLD }),                        "=",      "=",              "=",       "=",  "="],
  [operatorDecided("retry"),                                 OFF,      UNK,              OFF,       OFF,  OFF],
  [operatorDecided("skip"),                                  OFF,      OPEN,             OFF,       OFF,  OFF],
  [operatorDecided("abort"),                                 OFF,      STOP,             OFF,       OFF,  OFF],
  [operatorDecided("mark_done"),                             OFF,     "queued",         "queued",  OPEN, OFF],
  [operatorDecided("not_established"),                       OFF,     "queued",         "queued",  OPEN, "="],
  [operatorDecided("retry_now"),                             OFF,      OFF,              OFF,       OFF,  OFF],
  [operatorDecided("terminate"),                             STOP,     STOP,             STOP,      STOP, "="],
  [operatorDecided("terminate", 1),                          GONE,     GONE,             GONE,      GONE, GONE],
  [{ type: "CancelRequested", reason: "too_late" },          STOP,     STOP,             STOP,      STOP, "."],
  [{ type: "PauseRequested" },                               "=",      "=",              OPEN,      OPEN, OPEN],
  [{ type: "Resumed" },                                      "=",      NPAU,             "=",       "=",  NPAU],
];

const AT_EASE_STATUSES: readonly (readonly Status[])[] = [
  ["queued"],
  ["running"],
  ["waiting_input", "waiting_approval", "waiting_dependency"],
  ["waiting_operator"],
  ["retrying"],
  ["paused"],
  ["lost"],
  ["cancelling"],
  ["completed", "failed", "cancelled"],
];

const UNSETTLED_RUNS: readonly RunState[] = [
  aRun("running", { openAttempts: 1 }),
  anUnknownAtOperator(),
  aRun("outcome_unknown", { owner: "worker_1" }),
  aRun("lost", { openAttempts: 1 }),
  aRun("cancelling", { openAttempts: 1 }),
];

function ended(status: "completed" | "failed"): RunEvent {
  const outcome = status === "completed" ? SUCCEEDED : null;
  return { type: "Ended", status, outcome, reason: null };
}

function vanished(): RunEvent {
  return { type: "DeadlinePassed", remaining: null, because: "backing_missing" };
}

/** Only the end of its children takes a run from an operator. */
function isChild(event: RunEvent): boolean {
  return event.type === "FactArrived" && event.fact === "child";
}

function facts(completesHold: boolean, ...cells: readonly string[]): readonly Row[] {
  const kinds = ["message", "answer", "decision", "callback", "child"] as const;
  return kinds.map((kind) => [factArrived(kind, completesHold), ...cells] as const);
}

function deadlines(all: readonly OnDeadline[], ...cells: readonly string[]): readonly Row[] {
  return all.map((onDeadline) => [deadlinePassed(null, onDeadline), ...cells] as const);
}

/** What `reduce` does, in the words of the tables above. */
function outcomeOf(run: RunState, event: RunEvent): string {
  const decision = reduce(run, event, { kind: raiserOf(event), id: "somebody" });
  switch (decision.verdict) {
    case "refused":
      return `!${decision.rule}`;
    case "ignored":
      return ".";
    case "recorded":
      expect(decision.next.status).toBe(run.status);
      return "=";
    case "moved":
      expect(decision.next.status).not.toBe(run.status);
      return decision.next.status;
  }
}

function named(event: RunEvent): string {
  const { type, ...rest } = event;
  return `${type} ${JSON.stringify(rest)}`;
}

describe("reduce, every pair of status and event", () => {
  const pairs = AT_EASE.flatMap(([event, ...cells]) =>
    AT_EASE_STATUSES.flatMap((statuses, column) => {
      const words = (cells[column] ?? "no cell").split(" ");
      return statuses.map((status, index) => ({ run: aRun(status), event, word: words[index] ?? words[0] }));
    }),
  );
  test.each(pairs.map((pair) => [pair.run.status, named(pair.event), pair] as const))(
    "decides as the design says, at ease: %s, %s",
    (_status, _event, { run, event, word }) => {
      expect(outcomeOf(run, event)).toBe(word);
    },
  );

  const unsettled = UNSETTLED.flatMap(([event, ...cells]) =>
    UNSETTLED_RUNS.map((run, column) => ({ run, event, word: cells[column] })),
  );
  test.each(unsettled.map((pair) => [pair.run.status, named(pair.event), pair] as const))(
    "decides as the design says, with an open attempt: %s, %s",
    (_status, _event, { run, event, word }) => {
      expect(outcomeOf(run, event)).toBe(word);
    },
  );

  test("leaves out no status and no kind of event, fact, choice or settler", () => {
    expect([...AT_EASE_STATUSES.flat(), "outcome_unknown"].sort()).toEqual([...STATUSES].sort());
    const variant = (event: RunEvent) =>
      JSON.stringify({
        ...event,
        owner: 0,
        ...("hold" in event ? { hold: 0 } : {}),
        ...("remaining" in event ? { remaining: event.remaining !== null } : {}),
        retryAt: 0,
        reason: 0,
        outcome: 0,
        nextLookUp: 0,
        lookUpsEnd: 0,
      });
    const written = new Set([...AT_EASE, ...UNSETTLED].map(([event]) => variant(event)));
    expect(ALL_EVENTS.filter((event) => !written.has(variant(event)))).toEqual([]);
    const atEase = new Set(AT_EASE.map(([event]) => event.type));
    const open = new Set(UNSETTLED.map(([event]) => event.type));
    expect(open.size).toBe(16);
    expect([...open].filter((type) => !atEase.has(type))).toEqual(["EffectUnknown"]);
    expect(OPERATOR_CHOICES.filter((choice) => !written.has(variant(operatorDecided(choice))))).toEqual([]);
  });

  test.each(["waiting_input", "waiting_approval", "waiting_dependency", "retrying", "queued", "paused"] as const)(
    "refuses what only an owner says, also about effects: %s",
    (status) => {
      expect(outcomeOf(aRun(status), { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null })).toBe(NO);
      expect(outcomeOf(aRun(status), effectSettled("late_evidence", true))).toBe("=");
    },
  );

  test("ends a run that is being stopped with the end of its last child, unless somebody still works on it", () => {
    const stopping = aRun("cancelling", { owner: null, liveChildren: 1 });
    expect(outcomeOf(stopping, factArrived("child", false))).toBe(GONE);
    expect(outcomeOf({ ...stopping, liveChildren: 2 }, factArrived("child", false))).toBe("=");
    expect(outcomeOf({ ...stopping, openAttempts: 1 }, factArrived("child", false))).toBe("=");
    expect(outcomeOf({ ...stopping, owner: "worker_1" }, factArrived("child", false))).toBe("=");
    expect(outcomeOf(stopping, factArrived("message", false))).toBe("=");
  });

  test.each(["completed", "failed", "cancelled"] as const)("moves nothing after the end: %s", (status) => {
    expect(outcomeOf(aRun(status), { type: "EffectUnknown", nextLookUp: null, lookUpsEnd: null })).toBe(END);
    expect(outcomeOf(aRun(status), effectSettled("late_evidence", true))).toBe("=");
  });

  test("has a cell for every pair", () => {
    const empty = STATUSES.flatMap((status) => ALL_EVENTS.filter((event) => cellFor(status, event) === undefined));
    expect(empty).toEqual([]);
  });
});

describe("the statuses", () => {
  test("are fourteen, of which three are ends and four are holds", () => {
    expect(STATUSES).toHaveLength(14);
    expect(STATUSES.filter(isTerminal)).toEqual(["completed", "failed", "cancelled"]);
    expect(STATUSES.filter(isWaiting)).toEqual([
      "waiting_input",
      "waiting_approval",
      "waiting_dependency",
      "waiting_operator",
    ]);
  });
});

/** Who may raise what, by hand: r requester, a approver, o operator, w worker, v supervisor, s sweeper, p parent, e provider. */
const LETTERS: Readonly<Record<ActorKind, string>> = {
  requester: "r",
  approver: "a",
  operator: "o",
  worker: "w",
  supervisor: "v",
  sweeper: "s",
  parent: "p",
  provider: "e",
};

function mayBeRaisedBy(event: RunEvent): string {
  switch (event.type) {
    case "Submitted":
      return "rowe";
    case "Claimed":
    case "Held":
    case "Released":
    case "EffectUnknown":
    case "Ended":
      return "w";
    case "EffectSettled":
      return event.by === "person" ? "o" : "w";
    case "OwnerGone":
      return "vso";
    case "Recovered":
      return "vsow";
    case "DeadlinePassed":
    case "RetryDue":
      return "s";
    case "FactArrived":
      return { message: "ro", answer: "r", decision: "a", callback: "se", child: "ws" }[event.fact];
    case "OperatorDecided":
    case "PauseRequested":
    case "Resumed":
      return "o";
    case "CancelRequested":
      return "rop";
  }
}

describe("who may raise what", () => {
  test.each(ALL_EVENTS.map((event) => [named(event), event] as const))("%s", (_name, event) => {
    const allowed = ACTOR_KINDS.filter((kind) => mayRaise(event, kind)).map((kind) => LETTERS[kind]);
    expect(allowed.sort()).toEqual([...mayBeRaisedBy(event)].sort());
  });

  test("refuses everybody else, in every status", () => {
    for (const status of STATUSES) {
      for (const event of ALL_EVENTS) {
        for (const kind of ACTOR_KINDS) {
          if (mayBeRaisedBy(event).includes(LETTERS[kind])) continue;
          const decision = reduce(aRun(status), event, { kind, id: "somebody" });
          expect(decision).toEqual({ verdict: "refused", rule: "not_yours_to_raise" });
        }
      }
    }
  });
});
