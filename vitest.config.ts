import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

// One seed for all property tests of a run; a failing test prints it (vitest.setup.ts).
const seed = process.env.TEST_SEED ?? String(Math.floor(Math.random() * 2 ** 31));
const env = { TEST_SEED: seed, TEST_RUNS: process.env.TEST_RUNS ?? "" };

const files = (suffix: string) => ["packages", "apps", "infra", "test"].map((room) => `${room}/*/test/**/*${suffix}`);
const shared = {
  environment: "node",
  env,
  setupFiles: ["./vitest.setup.ts"],
};

// For CI, which counts the tests: a file for the report in JSON.
const report = process.env.HOLDPOINT_TEST_REPORT ?? "";

// The suffix of a test file says what it needs. Tests of whole processes are in test/.
export default defineConfig({
  test: {
    globalSetup: ["./vitest.global.ts"],
    reporters: report === "" ? ["default"] : ["default", ["json", { outputFile: report }]],
    coverage: {
      provider: "v8",
      include: ["packages/{core,workflow}/src/**/*.ts"],
      reporter: ["text-summary", "html"],
      thresholds: { 100: true },
    },
    // Postgres and Redis work beside the tests.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: files(".test.ts"),
          exclude: [...configDefaults.exclude, "**/*.pg.test.ts", "**/*.redis.test.ts"],
        },
      },
      { test: { ...shared, name: "pg", include: files(".pg.test.ts"), testTimeout: 30_000, hookTimeout: 30_000 } },
      {
        // One after the other: they share one Redis, and some flush it.
        test: {
          ...shared,
          name: "redis",
          include: [...files(".redis.test.ts"), "test/e2e/**/*.redis.test.ts"],
          fileParallelism: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        // One after the other: each starts processes, kills them, and measures times.
        test: {
          ...shared,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts", "test/chaos/**/*.test.ts"],
          exclude: [...configDefaults.exclude, "**/*.redis.test.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
