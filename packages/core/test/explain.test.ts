import { describe, expect, test } from "vitest";
import { type EXPLAINED_ABOUT, type ExplainedRun, explainReasons } from "../src/explain.ts";
import type { WaitingFor } from "../src/state.ts";
import { isTerminal, STATUSES } from "../src/status.ts";
import { waysOn } from "../src/ways-on.ts";

const aRun = (more: Partial<ExplainedRun> = {}): ExplainedRun => ({
  id: "run_1",
  status: "running",
  sentence: "Working since 12:00.",
  agent: "refunds@1",
  waitingFor: null,
  waitDeadline: null,
  nextLookUp: null,
  owner: null,
  attempts: [],
  approvals: [],
  service: null,
  servedBy: 1,
  queuedBefore: null,
  stopRequestedAt: null,
  pauseRequestedAt: null,
  takeovers: 0,
  liveChildren: 0,
  children: [],
  verdict: null,
  ...more,
});

const OWNER = {
  workerId: "wrk_1",
  host: "box",
  pid: 7,
  heardAt: "12:00",
  leaseUntil: "12:15",
  goneAt: "12:20",
  silent: false,
  progressDueAt: "13:00",
  drainRequestedAt: null,
};
const ATTEMPT = {
  id: "att_1",
  tool: "send_refund",
  number: 2,
  effectClass: "look_up",
  startedAt: "12:01",
  deadlineAt: "12:02",
  overdue: false,
  lookUps: 0,
} as const;
const APPROVAL = {
  id: "apr_1",
  tool: "send_refund",
  roles: ["manager"],
  users: ["dora"],
  deadline: "18:00",
  deciders: 2,
};
const VERDICT = {
  verdict: "grace_pending",
  rule: "own_gap",
  reason: "lease_expired",
  until: "12:20",
  at: "12:16",
} as const;

const about = (which: (typeof EXPLAINED_ABOUT)[number], more: Partial<ExplainedRun>) =>
  explainReasons(aRun(more)).flatMap((reason) => (reason.about === which ? [reason.text] : []));
const waitsFor = (kind: WaitingFor["kind"]): WaitingFor => ({
  kind,
  principal: "payments",
  subject: null,
  reason: "r",
});

describe("explainReasons", () => {
  test("begins with the run's sentence; of a run that has ended there is nothing more to say", () => {
    for (const status of STATUSES) {
      const [first, ...rest] = explainReasons(aRun({ status, takeovers: 1 }));
      expect(first).toEqual({ about: "status", text: "Working since 12:00." });
      expect(rest.length > 0).toBe(!isTerminal(status));
    }
  });

  test("a stop and a pause that were asked for", () => {
    expect(about("request", { stopRequestedAt: "12:05", pauseRequestedAt: "12:06" })).toEqual([
      "It was asked to stop at 12:05: it starts nothing more.",
      "It was asked to pause at 12:06, and pauses once its present step is over.",
    ]);
    expect(about("request", { status: "paused", pauseRequestedAt: "12:06" })).toEqual([
      "It was asked to pause at 12:06.",
    ]);
    expect(about("request", {})).toEqual([]);
  });

  test("who has it, when it was heard of, and by when something happens", () => {
    expect(about("owner", { owner: OWNER })).toEqual([
      "Its worker wrk_1 (process 7 on box) was last heard of at 12:00, and has its lease until 12:15.",
      "Its next progress is due at 13:00; later than that, another worker of refunds@1 takes it up.",
    ]);
    expect(about("owner", { owner: { ...OWNER, silent: true } })).toEqual([
      "Its worker wrk_1 (process 7 on box) was last heard of at 12:00; its lease was over at 12:15, and unless it renews, it is taken for gone at 12:20.",
    ]);
    expect(about("owner", { owner: { ...OWNER, silent: true, goneAt: null } })[0]).toMatch(
      /it has been declared gone\.$/,
    );
    const draining = { ...OWNER, progressDueAt: null, drainRequestedAt: "12:10" };
    expect(about("owner", { owner: draining })[1]).toBe(
      "Its worker was asked to drain at 12:10: it gives the run back.",
    );
    expect(about("owner", {})).toEqual(["No worker is known to have it."]);
    expect(about("owner", { status: "queued" })).toEqual([]);
  });

  test("an open call: what it is, since when, and who finds out how it ended", () => {
    expect(about("attempt", { owner: OWNER, attempts: [ATTEMPT] })).toEqual([
      "Attempt 2 of send_refund (an effect that can be looked up), sent at 12:01, has no known outcome yet; its worker waits for it until 12:02.",
    ]);
    const unknown = { status: "outcome_unknown", nextLookUp: "12:10", attempts: [{ ...ATTEMPT, lookUps: 3 }] } as const;
    expect(about("attempt", unknown)).toEqual([
      "Attempt 2 of send_refund (an effect that can be looked up), sent at 12:01, has no known outcome; its time was over at 12:02; looked up 3 times so far; the next look-up is due at 12:10.",
    ]);
    const late = { owner: OWNER, attempts: [{ ...ATTEMPT, effectClass: "unsafe", overdue: true }] } as const;
    expect(about("attempt", late)).toEqual([
      "Attempt 2 of send_refund (an effect that can neither be repeated nor looked up), sent at 12:01, has no known outcome; its time was over at 12:02.",
    ]);
  });

  test("a request: whom it asks, and that nobody may decide it", () => {
    expect(about("approval", { approvals: [APPROVAL] })).toEqual([
      "apr_1 asks the role manager or dora about send_refund, until 18:00; 2 may decide it.",
    ]);
    expect(about("approval", { approvals: [{ ...APPROVAL, users: [], deciders: 0 }] })).toEqual([
      "apr_1 asks the role manager about send_refund, until 18:00; 0 may decide it. Nobody may decide it at present: nobody has the role, or all who do are excluded.",
    ]);
    expect(about("approval", { approvals: [{ ...APPROVAL, roles: [], users: [], deciders: 0 }] })[0]).toMatch(
      /asks nobody who is named/,
    );
  });

  test("a service that is closed for everybody", () => {
    const service = { name: "payments", reason: "throttled", since: "11:00", closedUntil: "12:30" };
    expect(about("service", { service })).toEqual([
      "The service payments has been throttled since 11:00; it is closed for all runs until 12:30.",
    ]);
    expect(about("service", { service: { ...service, closedUntil: null } })[0]).toMatch(/it may be called again/);
  });

  test("a queue that nobody serves, and one that is long", () => {
    expect(about("queue", { queuedBefore: 3, servedBy: 0 })).toEqual([
      "No live worker has refunds@1: nobody takes it up.",
    ]);
    expect(about("queue", { queuedBefore: 3, servedBy: 1 })).toEqual([
      "One live worker has refunds@1; 3 of its runs have been queued for longer.",
    ]);
    expect(about("queue", { queuedBefore: 0, servedBy: 2 })[0]).toMatch(/^2 live workers have/);
  });

  test("its children, and those that are not there any more", () => {
    expect(about("child", { liveChildren: 2, children: [{ id: "run_2", status: "waiting_approval" }] })).toEqual([
      "Its child run_2 is waiting approval.",
      "1 of its 2 live child runs are not there any more.",
    ]);
  });

  test("losses in a row", () => {
    expect(about("takeovers", { takeovers: 1 })[0]).toMatch(/^One claim has followed a loss/);
    expect(about("takeovers", { takeovers: 2 })[0]).toMatch(/^2 claims have followed a loss/);
  });

  test("the last verdict, with what it is waited for with", () => {
    expect(about("verdict", { verdict: VERDICT })).toEqual([
      "Last judged at 12:16, by the rule own gap: kept until 12:20, although its worker has not renewed its lease.",
    ]);
    expect(about("verdict", { verdict: { ...VERDICT, verdict: "lost", until: null } })).toEqual([
      "Last judged at 12:16, by the rule own gap: lost, because its worker has not renewed its lease.",
    ]);
    expect(about("verdict", { verdict: { ...VERDICT, verdict: "active", until: null, reason: null } })).toEqual([
      "Last judged at 12:16, by the rule own gap: well.",
    ]);
    expect(about("verdict", { verdict: { ...VERDICT, reason: "what no list has" } })[0]).toMatch(/kept until 12:20\.$/);
  });
});

describe("waysOn", () => {
  const commands = (more: Partial<ExplainedRun>) => waysOn(aRun(more)).map(({ command }) => command);

  test("there is one for every run that has not ended, and none for one that has", () => {
    const approvals = [APPROVAL];
    for (const status of STATUSES) {
      const run = aRun({ status, approvals, owner: OWNER, attempts: [ATTEMPT] });
      expect(waysOn(run).length > 0).toBe(!isTerminal(status));
    }
  });

  test("a queue needs a free worker, or one at all", () => {
    expect(waysOn(aRun({ status: "queued" }))).toEqual([
      { text: "a worker becomes free and takes it up", command: null },
    ]);
    expect(waysOn(aRun({ status: "queued", servedBy: 0 }))).toEqual([
      { text: "a worker with refunds@1 is started", command: "holdpoint worker --agents <module>" },
    ]);
  });

  test("a running run goes on by its worker; another takes it up, or an operator takes it away", () => {
    expect(commands({})).toEqual([null]);
    expect(commands({ owner: OWNER })).toEqual([null, "holdpoint workers takeover run_1 --dry-run"]);
    const silent = waysOn(aRun({ owner: { ...OWNER, silent: true } }));
    expect(silent[0]?.text).toMatch(/after 12:20$/);
    expect(waysOn(aRun({ owner: { ...OWNER, silent: true, goneAt: null } }))[0]?.text).toMatch(/next pass$/);
  });

  test("a hold needs whom it names", () => {
    expect(commands({ status: "waiting_input" })).toEqual(['holdpoint answer run_1 "<answer>"']);
    expect(commands({ status: "waiting_approval", approvals: [APPROVAL] })).toEqual(["holdpoint approvals show apr_1"]);
    const nobody = { ...APPROVAL, deciders: 0 };
    expect(commands({ status: "waiting_approval", approvals: [nobody] })).toEqual([
      "holdpoint assignments grant <user> manager",
      "holdpoint approvals show apr_1",
    ]);
    expect(commands({ status: "waiting_approval", approvals: [{ ...nobody, roles: [] }] })).toEqual([
      "holdpoint approvals show apr_1",
    ]);
  });

  test("a dependency needs its children, its service, the other side, or its time", () => {
    const status = "waiting_dependency";
    const children = [{ id: "run_2", status: "running" }] as const;
    expect(commands({ status, waitingFor: waitsFor("child"), children })).toEqual(["holdpoint runs explain run_2"]);
    expect(waysOn(aRun({ status, waitingFor: waitsFor("child") }))[0]?.text).toMatch(/children are gone/);
    expect(waysOn(aRun({ status, waitingFor: waitsFor("service"), waitDeadline: "12:30" }))).toEqual([
      { text: "payments is tried again at 12:30", command: "holdpoint services" },
    ]);
    expect(commands({ status, waitingFor: waitsFor("callback") })).toEqual([null]);
    expect(commands({ status, waitingFor: waitsFor("timer") })).toEqual([
      null,
      'holdpoint runs decide run_1 terminate --reason "<why>"',
    ]);
  });

  test("an operator has the choices that fit what it waits with", () => {
    const status = "waiting_operator";
    const choices = (more: Partial<ExplainedRun>) =>
      commands({ status, ...more }).map((command) => command?.split(" ")[4]);
    expect(choices({})).toEqual(["retry", "abort"]);
    expect(choices({ waitingFor: { ...waitsFor("operator"), subject: "call_1" } })).toEqual(["retry", "skip", "abort"]);
    expect(choices({ attempts: [ATTEMPT] })).toEqual(["retry", "mark_done", "not_established"]);
  });

  test("an unknown outcome is looked up, or a person says what is known", () => {
    expect(waysOn(aRun({ status: "outcome_unknown", nextLookUp: "12:10", attempts: [ATTEMPT] }))).toEqual([
      { text: "a worker looks the call up at 12:10", command: null },
      {
        text: "an operator has seen outside that send_refund was done",
        command: 'holdpoint runs decide run_1 mark_done --reason "<why>" --attempt att_1 --result <json>',
      },
      {
        text: "an operator says that nobody can find out about send_refund",
        command: 'holdpoint runs decide run_1 not_established --reason "<why>" --attempt att_1',
      },
    ]);
    expect(waysOn(aRun({ status: "outcome_unknown" }))[0]?.text).toBe("a worker looks the call up");
  });

  test("the others need their time, an operator, or the sweeper", () => {
    expect(commands({ status: "retrying" })).toEqual(['holdpoint runs decide run_1 retry_now --reason "<why>"']);
    expect(commands({ status: "paused" })).toEqual(["holdpoint runs resume run_1"]);
    expect(commands({ status: "lost" })).toEqual([null]);
    const pending = { owner: OWNER, children: [{ id: "run_2", status: "running" }] } as const;
    expect(waysOn(aRun({ status: "cancelling", ...pending })).map(({ text }) => text)).toEqual([
      "wrk_1 gives it back",
      "its child run_2 stops",
    ]);
    expect(waysOn(aRun({ status: "cancelling" }))).toEqual([]);
  });
});

describe("a task, which is worked on elsewhere", () => {
  const task = (more: Partial<ExplainedRun>) => aRun({ isTask: true, agent: "ci-build@1", ...more });
  const textsOf = (run: ExplainedRun, about: string) =>
    explainReasons(run).flatMap((reason) => (reason.about === about ? [reason.text] : []));

  test("says who has it in hands, and by when that one has to be heard of", () => {
    const executor = { ...OWNER, host: "runner 7" };
    expect(textsOf(task({ owner: executor }), "owner")).toEqual([
      "runner 7 has it in hands, was last heard of at 12:00, and has to be again by 12:15.",
    ]);
    expect(textsOf(task({ owner: { ...executor, silent: true } }), "owner")).toEqual([
      "runner 7 has it in hands and was last heard of at 12:00; it had to be by 12:15, and unless it is heard of, it is given up at 12:20.",
    ]);
    expect(textsOf(task({ owner: { ...executor, silent: true, goneAt: null } }), "owner")).toEqual([
      "runner 7 has it in hands and was last heard of at 12:00; it had to be by 12:15, and it has been given up.",
    ]);
    expect(textsOf(task({ status: "lost" }), "owner")).toEqual([]);
  });

  test("waits for somebody, and not for a worker", () => {
    const queued = task({ status: "queued", queuedBefore: 2, servedBy: 0 });
    expect(textsOf(queued, "queue")).toEqual([
      "ci-build@1 is done elsewhere; 2 of its runs have waited for somebody for longer.",
    ]);
    expect(waysOn(queued)).toEqual([{ text: "somebody starts it", command: "holdpoint tasks start run_1" }]);
  });

  test("is moved by its executor, then by an operator", () => {
    expect(waysOn(task({ owner: OWNER })).map(({ command }) => command)).toEqual(["holdpoint tasks show run_1"]);
    expect(waysOn(task({ status: "lost" })).map(({ text }) => text)).toEqual([
      "whoever had it in hands is heard of again",
      "its time as lost is over, and an operator is asked",
    ]);
    const stopping = task({ status: "cancelling", owner: OWNER });
    expect(waysOn(stopping).map(({ text }) => text)).toEqual([
      "whoever has it in hands says that it has stopped",
      "an operator ends it all the same",
    ]);
    // Nobody has it: it moves as every run.
    for (const run of [task({ status: "cancelling" }), task({ status: "paused" })]) {
      expect(waysOn(run)).toEqual(waysOn({ ...run, isTask: false }));
    }
  });
});
