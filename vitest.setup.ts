import fc from "fast-check";
import { afterEach } from "vitest";

const seed = Number(process.env.TEST_SEED);
const runs = process.env.TEST_RUNS ?? "";

fc.configureGlobal({ seed, ...(runs === "" ? {} : { numRuns: Number(runs) }) });

afterEach(({ task }) => {
  if (task.result?.state === "fail") process.stderr.write(`to repeat this run: TEST_SEED=${seed} npm test\n`);
});
