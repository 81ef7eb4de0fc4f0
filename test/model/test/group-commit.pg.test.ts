// Random sequences against the store, by several processes at once: three workers whose commits share statements, people, a
// sweeper. Rows are locked by others, connections break, answers are lost, processes are killed or are taken for dead while
// they live. After each sequence, all that was acknowledged must be there, and nothing else.

import { type BatchKind, type BatchReport, findViolations } from "@holdpoint/store";
import { createTestDatabase } from "@holdpoint/testkit";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Round, sequences } from "../commands.ts";
import { judge } from "../judge.ts";
import type { Ledger } from "../ledger.ts";
import { readDatabase } from "../read-database.ts";
import { type Clock, openWorld } from "../world.ts";

const stack = new AsyncDisposableStack();
const clock: Clock = { movedMs: 0, moved: Promise.resolve() };
const batches: BatchReport[] = [];
const answers = new Map<string, number>();
let url = "";
let admin: pg.Client;

beforeAll(async () => {
  ({ url } = stack.use(await createTestDatabase()));
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
  stack.defer(() => admin.end());
});

afterAll(() => stack.disposeAsync());

/** Plays a sequence to its end; gives what is wrong afterwards. */
async function play(rounds: readonly Round[]): Promise<readonly string[]> {
  await using world = await openWorld({ url, admin, clock, onBatch: (report) => batches.push(report) });
  for (const round of rounds) await world.play(round);
  await world.finish();
  count(world.ledger);
  const violations = await findViolations(world.store);
  return [
    ...judge(world.ledger, await readDatabase(admin, world.tenantId)),
    ...violations.map(({ rule, runId }) => `run ${runId} violates ${rule}`),
  ];
}

function count({ commits, moves }: Ledger): void {
  for (const [kind, sent] of [
    ["commit", commits],
    ["move", moves],
  ] as const) {
    for (const { sends, answers: given } of sent) {
      const names = given.map(
        (each) => `${kind} ${each.says === "yes" ? "yes" : each.says === "no" ? each.why : "unknown"}`,
      );
      const unheard = Array.from({ length: sends - given.length }, () => `${kind} unheard`);
      for (const name of [...names, ...unheard]) answers.set(name, (answers.get(name) ?? 0) + 1);
    }
  }
}

const SEQUENCES = 40;
/** A machine that is busy with other tests plays fewer; a sequence that fails is made smaller for no longer. */
const LIMIT_MS = 75_000;

test("whatever breaks meanwhile, what was acknowledged is there, once and in order, and nothing else", {
  timeout: 3 * LIMIT_MS,
}, async () => {
  const property = fc.asyncProperty(sequences, async (rounds) => {
    expect(await play(rounds)).toEqual([]);
  });
  await fc.assert(property, {
    numRuns: Number(process.env.TEST_RUNS || SEQUENCES),
    interruptAfterTimeLimit: LIMIT_MS,
  });
  // Otherwise nothing was tried: statements were shared, rows were split off, and each kind of answer was given.
  const told = Object.values(summary());
  expect(told.filter(({ shared, splitOff }) => shared === 0 || splitOff === 0)).toEqual([]);
  expect(KINDS.filter((kind) => !answers.has(kind))).toEqual([]);
  process.stdout.write(
    `batches: ${JSON.stringify(summary())}, answers: ${JSON.stringify(Object.fromEntries(answers))}\n`,
  );
});

/** Answers that a run of these sequences cannot do without. */
const KINDS = [
  "commit yes",
  "commit replaced",
  "commit refused",
  "commit unknown",
  "commit unheard",
  "move yes",
  "move conflict",
];

function summary() {
  const of = (kind: BatchKind) => batches.filter((each) => each.kind === kind);
  return Object.fromEntries(
    (["starts", "said", "results", "moves"] as const).map((kind) => [
      kind,
      {
        statements: of(kind).length,
        shared: of(kind).filter(({ size }) => size > 1).length,
        largest: Math.max(0, ...of(kind).map(({ size }) => size)),
        splitOff: of(kind).reduce((total, { splitOff }) => total + splitOff, 0),
      },
    ]),
  );
}
