import type { AgentRef } from "@holdpoint/core";

/** "Look at run R at version V." Carries no state and no authority. */
export interface WakeUp {
  readonly runId: string;
  readonly version: number;
}

/** A wake-up together with the agent whose queue it goes through. */
export interface AgentWakeUp extends WakeUp {
  readonly agent: AgentRef;
}

const RUN_ID = /^[A-Za-z0-9_-]{1,100}$/;

/**
 * The queue's id of a wake-up, `<runId>-<version>`; of a repair, `<runId>-<version>-s<sweep>`. While a job with an id
 * waits, adding it again does nothing, so each sweep that repairs needs its own number.
 *
 * @throws {RangeError} `runId` has other characters than letters, digits, `_`, `-`, or more than 100; `version` or
 *   `sweep` is not a natural number.
 */
export function wakeUpId(wakeUp: WakeUp, sweep?: number): string {
  if (!isWakeUp(wakeUp)) throw new RangeError("A wake-up needs a run id (letters, digits, _ and -) and a version >= 0");
  if (sweep === undefined) return `${wakeUp.runId}-${wakeUp.version}`;
  if (!isNatural(sweep)) throw new RangeError("A sweep's number must be a natural number");
  return `${wakeUp.runId}-${wakeUp.version}-s${sweep}`;
}

/** What a queue's job carried, or null when it is no wake-up. */
export function parseWakeUp(data: unknown): WakeUp | null {
  return isWakeUp(data) ? { runId: data.runId, version: data.version } : null;
}

function isWakeUp(data: unknown): data is WakeUp {
  if (typeof data !== "object" || data === null || !("runId" in data) || !("version" in data)) return false;
  return typeof data.runId === "string" && RUN_ID.test(data.runId) && isNatural(data.version);
}

function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
