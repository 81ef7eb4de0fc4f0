export { backendPid, untilWaiting } from "./barrier.ts";
export {
  breakConnection,
  type Fault,
  type FaultPoint,
  type FaultPoints,
  type FaultPointsOptions,
  hang,
  killProcess,
  openFaultPoints,
  type Sending,
} from "./fault-points.ts";
export { moveClock, stopClock } from "./move-clock.ts";
export { type ScriptedModel, type ScriptedReply, type ScriptedTurn, scriptedModel } from "./scripted-model.ts";
export { createTestDatabase, type TestDatabase } from "./test-database.ts";
export { testRedisUrl } from "./test-redis.ts";
export { type Deadline, waitFor } from "./wait-for.ts";
