// The layers. A package may import itself, what is listed here, and nothing else (ARCHITECTURE.md has the picture).
// Tests may import anything: a pattern for them stands in every rule.
const PACKAGE_MAY_IMPORT = {
  core: [],
  workflow: ["core"],
  protocol: ["core"],
  store: ["core"],
  queue: ["core"],
  client: ["core", "protocol"],
  // store for the form in which people see ids
  log: ["store"],
  runtime: ["core", "workflow", "store", "queue"],
  // protocol for the slots of a pattern: the api judges by the same what a schedule may say
  upkeep: ["core", "protocol", "store", "queue"],
  embedded: [],
  testkit: ["core", "protocol", "store", "queue", "client", "runtime", "embedded"],
};
const APP_MAY_IMPORT = {
  api: ["core", "protocol", "store", "queue", "upkeep", "log"],
  worker: ["core", "store", "queue", "runtime", "log"],
  sweeper: ["store", "queue", "upkeep", "log"],
  cli: ["client", "protocol"],
  // dev prepares what the fleet stands on (the schema, the queue's tables) and looks into the queue; it moves no run
  dev: ["client", "protocol", "embedded", "store", "queue"],
  "refund-desk": ["runtime", "workflow"],
};
const TEST = "(^|/)test/";

const layers = (root, table) =>
  Object.entries(table).map(([name, allowed]) => ({
    name: `${root}-${name}-layer`,
    comment: `${name} may import only: ${allowed.join(", ") || "nothing"}`,
    severity: "error",
    from: { path: `^${root}/${name}/`, pathNot: TEST },
    to: { path: "^(packages|apps)/", pathNot: [`^${root}/${name}/`, ...allowed.map((it) => `^packages/${it}/`)] },
  }));

const known = (root, table) => `${root}/(${Object.keys(table).join("|")})/`;

export default {
  forbidden: [
    ...layers("packages", PACKAGE_MAY_IMPORT),
    ...layers("apps", APP_MAY_IMPORT),
    {
      name: "in-the-table",
      comment: "a new package or app gets its row in the tables above first",
      severity: "error",
      from: {
        path: "^(packages|apps)/",
        pathNot: `^(${known("packages", PACKAGE_MAY_IMPORT)}|${known("apps", APP_MAY_IMPORT)})`,
      },
      to: {},
    },
    {
      name: "pure-ground",
      comment: "core does no I/O and carries no dependency, so that every rule in it can be tested with values alone",
      severity: "error",
      from: { path: "^packages/core/src/" },
      to: { dependencyTypes: ["core", "npm", "npm-dev", "npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "pure-graphs",
      comment: "workflow decides from values alone as well; of packages it knows zod, the language of its definitions",
      severity: "error",
      from: { path: "^packages/workflow/src/" },
      to: { dependencyTypes: ["core", "npm", "npm-dev", "npm-no-pkg", "npm-unknown"], pathNot: "node_modules/zod/" },
    },
    {
      name: "postgres-has-one-owner",
      comment:
        "only store speaks SQL to our tables. queue hands a connection to BullMQ, refund-desk has a database of its own, dev makes databases",
      severity: "error",
      from: {
        path: "^(packages|apps)/",
        pathNot: [TEST, "^packages/(store|queue|testkit)/", "^apps/(refund-desk|dev)/"],
      },
      to: { path: "node_modules/(pg|drizzle-orm)/" },
    },
    {
      name: "redis-has-one-owner",
      comment: "only queue knows BullMQ and Redis, so that the queue stays disposable",
      severity: "error",
      from: { path: "^(packages|apps)/", pathNot: [TEST, "^packages/queue/"] },
      to: { path: "node_modules/(bullmq|ioredis)/" },
    },
    {
      name: "no-testkit-in-products",
      comment: "testkit replaces clocks and models; it must not run where work is real",
      severity: "error",
      from: { path: "^(packages|apps)/", pathNot: [TEST, "^packages/testkit/"] },
      to: { path: "^packages/testkit/" },
    },
    {
      name: "no-tests-in-src",
      comment: "tests read sources, not the other way",
      severity: "error",
      from: { path: "/src/" },
      to: { path: TEST },
    },
    { name: "no-cycles", comment: "a cycle has no layer", severity: "error", from: {}, to: { circular: true } },
    {
      name: "resolvable",
      comment: "an import that does not resolve is seen by no other rule",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(packages|apps)/[^/]+/dist/" },
    tsConfig: { fileName: "tsconfig.base.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "default"] },
  },
};
