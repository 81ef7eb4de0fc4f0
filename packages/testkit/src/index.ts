export { backendPid, untilWaiting } from "./barrier.ts";
export { createTestDatabase, type TestDatabase } from "./test-database.ts";
export { testRedisUrl } from "./test-redis.ts";
export { type Deadline, waitFor } from "./wait-for.ts";
