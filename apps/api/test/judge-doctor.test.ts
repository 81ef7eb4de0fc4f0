import type { FleetFacts, ServerFacts } from "@holdpoint/store/read";
import { describe, expect, test } from "vitest";
import { type DoctorFacts, judgeDoctor, worstOf } from "../src/judge-doctor.ts";

const SERVER: ServerFacts = {
  version: "17.2",
  versionNumber: 170_002,
  inRecovery: false,
  fsync: true,
  fullPageWrites: true,
  synchronousCommit: "on",
  synchronousStandbyNames: "",
  standbys: 0,
  synchronousStandbys: 0,
  connections: 12,
  maxConnections: 100,
  lockTimeoutMs: 1_000,
  statementTimeoutMs: 10_000,
  clockMs: 1_000_000,
  migratedTo: 5,
  newestMigration: 5,
};
const WORKER = {
  id: "01938b5c-0000-7000-8000-000000000001",
  host: "box",
  pid: 7,
  silent: false,
  skewMs: 3,
  draining: false,
};
const AGENT: FleetFacts["agents"][number] = {
  name: "refunds",
  version: "1",
  servedBy: 1,
  queued: 0,
  oldestQueuedMs: null,
  live: null,
};
const FLEET: FleetFacts = {
  watch: { seenBy: "sweeper-1", seenAgoMs: 900, sinceAgoMs: 3_600_000 },
  workers: [WORKER],
  agents: [AGENT],
};

interface Changes {
  readonly server?: Partial<ServerFacts>;
  readonly fleet?: Partial<FleetFacts> | null;
  readonly rest?: Partial<Omit<DoctorFacts, "server" | "fleet">>;
}

const judge = ({ server = {}, fleet = {}, rest = {} }: Changes) =>
  judgeDoctor({
    server: { ...SERVER, ...server },
    fleet: fleet === null ? null : { ...FLEET, ...fleet },
    apiSkewMs: 2,
    queueWorks: true,
    waiting: [],
    ...rest,
  });

/** What is not well, by name. */
const found = (changes: Changes) =>
  judge(changes).flatMap(({ name, result, text }) => (result === "ok" ? [] : [[name, result, text]]));

/** The same without what is said. */
const marks = (changes: Changes) => found(changes).map(([name, result]) => [name, result]);

test("a healthy fleet has nothing that is marked, and every check says what it saw", () => {
  const checks = judge({});
  expect(found({})).toEqual([]);
  expect(worstOf(checks)).toBe("ok");
  expect(checks).toHaveLength(15);
  for (const { text, todo } of checks) expect([text === "", todo]).toEqual([false, null]);
});

test("the worst of all decides", () => {
  expect(worstOf([])).toBe("ok");
  expect(worstOf(judge({ server: { fullPageWrites: false } }))).toBe("warn");
  expect(worstOf(judge({ server: { fullPageWrites: false, inRecovery: true } }))).toBe("fail");
});

describe("the database", () => {
  test.each([
    [{ versionNumber: 140_009, version: "14.9" }, "database version", "fail", /14\.9/],
    [{ inRecovery: true }, "primary", "fail", /standby/],
    [{ migratedTo: 4 }, "migrations", "fail", /older than this program/],
    [{ migratedTo: null }, "migrations", "fail", /not there/],
    [{ migratedTo: 6 }, "migrations", "warn", /newer than this program/],
    [{ fsync: false }, "writes to disk", "fail", /power cut/],
    [{ fullPageWrites: false }, "writes to disk", "warn", /full_page_writes/],
    [{ synchronousCommit: "off" }, "synchronous_commit", "fail", /an effect may be made again/],
    [{ standbys: 1 }, "standbys", "warn", /none of them synchronous/],
    [{ lockTimeoutMs: 0 }, "time limits of statements", "warn", /not set/],
    [{ statementTimeoutMs: 0 }, "time limits of statements", "warn", /not set/],
    [{ connections: 80 }, "connections", "warn", /80 of 100/],
  ] as const)("%j is told as %s: %s", (server, name, result, text) => {
    expect(found({ server })).toEqual([[name, result, expect.stringMatching(text)]]);
  });

  test("with a synchronous standby that is there is well; with one that is not, commits wait", () => {
    const asked = { synchronousStandbyNames: "one", standbys: 1 };
    expect(found({ server: { ...asked, synchronousStandbys: 1 } })).toEqual([]);
    expect(marks({ server: { ...asked, synchronousStandbys: 0 } })).toEqual([["standbys", "fail"]]);
    expect(marks({ server: { ...asked, synchronousStandbys: null } })).toEqual([["standbys", "warn"]]);
    const local = { ...asked, synchronousStandbys: 1, synchronousCommit: "local" };
    expect(marks({ server: local })).toEqual([["synchronous_commit", "warn"]]);
    expect(found({ server: { synchronousCommit: "local" } })).toEqual([]);
  });

  test("whose schema is older is told without what its tables would say", () => {
    expect(judge({ server: { migratedTo: 4 }, fleet: null }).map(({ name }) => name)).not.toContain("workers");
  });
});

describe("the clocks", () => {
  test.each([
    [1_999, []],
    [2_000, [["clock of the api", "warn", "2000 ms ahead of the database's"]]],
    [-150_000, [["clock of the api", "warn", "150000 ms behind the database's"]]],
    [240_000, [["clock of the api", "fail", "240000 ms ahead of the database's"]]],
  ] as const)("of the api, %i ms off", (apiSkewMs, marked) => {
    expect(found({ rest: { apiSkewMs } })).toEqual(marked);
  });

  test("of the workers: those that are off are named, at most five", () => {
    const off = Array.from({ length: 7 }, (_, pid) => ({ ...WORKER, pid, skewMs: -5_000 }));
    const [marked] = found({ fleet: { workers: [...off, { ...WORKER, skewMs: null }] } });
    expect(marked?.slice(0, 2)).toEqual(["clocks of the workers", "warn"]);
    expect(marked?.[2]).toMatch(/^box:0 5000 ms behind the database's, .* and 2 more$/);
  });
});

describe("the fleet", () => {
  test("without a sweeper for long fails; one that is late is marked", () => {
    const watch = FLEET.watch ?? { seenBy: "", seenAgoMs: 0, sinceAgoMs: 0 };
    expect(found({ fleet: { watch: null } })).toEqual([["sweepers", "fail", "none has ever looked"]]);
    expect(marks({ fleet: { watch: { ...watch, seenAgoMs: 15_000 } } })).toEqual([["sweepers", "warn"]]);
    expect(marks({ fleet: { watch: { ...watch, seenAgoMs: 60_000 } } })).toEqual([["sweepers", "fail"]]);
  });

  test("without workers fails where runs are queued, and is marked where none is", () => {
    const agents = [{ ...AGENT, servedBy: 0, live: 0 }];
    expect(found({ fleet: { workers: [], agents } })).toEqual([["workers", "warn", "none lives, 0 runs are queued"]]);
    const queued = [{ ...AGENT, queued: 3, oldestQueuedMs: 5 }];
    expect(marks({ fleet: { workers: [], agents: queued } })).toEqual([["workers", "fail"]]);
  });

  test("with silent workers names them", () => {
    const [marked] = found({ fleet: { workers: [WORKER, { ...WORKER, silent: true }] } });
    expect(marked).toEqual(["workers", "warn", expect.stringMatching(/^1 of 2 have not renewed their lease: wrk_/)]);
  });

  test("with runs of a version that nobody has: fails once one is queued, is marked before", () => {
    const gone = { ...AGENT, version: "0", servedBy: 0, live: 3 };
    expect(found({ fleet: { agents: [AGENT, gone] } })).toEqual([
      ["versions", "warn", "no worker has refunds@0 (3 runs, 0 queued)"],
    ]);
    const queued = { ...gone, queued: 1, oldestQueuedMs: 10 };
    expect(marks({ fleet: { agents: [queued] } })).toEqual([["versions", "fail"]]);
    expect(found({ fleet: { agents: [{ ...gone, live: 0 }] } })).toEqual([]);
  });
});

describe("the queue", () => {
  const agents = [{ ...AGENT, queued: 4, oldestQueuedMs: 31_000 }];
  const drift = (waiting: number | null, more: Partial<(typeof agents)[0]> = {}) =>
    found({
      fleet: { agents: agents.map((agent) => ({ ...agent, ...more })) },
      rest: { waiting: [{ agent: "refunds@1", waiting }] },
    });

  test("that takes no write is marked: nothing is lost by it", () => {
    expect(marks({ rest: { queueWorks: false } })).toEqual([["queue", "warn"]]);
  });

  test("without wake-ups for runs that have been queued for long, or with far too many, has drifted", () => {
    expect(drift(0)).toEqual([["queue drift", "warn", "refunds@1: 4 runs queued, no wake-up for them"]]);
    expect(drift(1_005)).toEqual([["queue drift", "warn", "refunds@1: 1005 wake-ups for 4 queued runs"]]);
    expect(drift(4)).toEqual([]);
    expect(drift(0, { oldestQueuedMs: 2_000 })).toEqual([]);
  });

  test("that does not say how long it is, is told so", () => {
    expect(drift(null)).toEqual([["queue drift", "warn", "1 queues did not say how long they are"]]);
  });

  test("of a version that nobody has is not the queue's fault", () => {
    expect(drift(0, { servedBy: 0, live: 2 }).map(([name]) => name)).toEqual(["versions"]);
  });
});
