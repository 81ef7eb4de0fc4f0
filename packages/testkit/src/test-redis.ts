import { inject } from "vitest";
import "./test-context.ts";

/**
 * The tests' Redis, shared by all suites; `null` where there is none. Suites say so themselves:
 * `describe.skipIf(testRedisUrl() === null)(…)`. The files of the redis project run one after the other.
 */
export function testRedisUrl(): string | null {
  return inject("redisUrl");
}
