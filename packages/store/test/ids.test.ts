import { expect, test } from "vitest";
import { newId, showId, showIds } from "../src/index.ts";

test("ids in a log line are those that the api shows; everything else stays as it is", () => {
  const [runId, workerId] = [newId(), newId()];
  const line = { event: "run.taken_up", runId, workerId, epoch: 2, callId: "not an id", runs: [runId] };
  expect(showIds(line)).toEqual({ ...line, runId: showId("run", runId), workerId: showId("worker", workerId) });
});
