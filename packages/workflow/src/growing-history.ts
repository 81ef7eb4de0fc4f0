import type { JsonValue } from "@holdpoint/core";
import type { Choice, Execution, History } from "./history.ts";
import { addChoice, addExecution, type Indexed, indexHistory, replaceExecution } from "./index-history.ts";
import { known } from "./known.ts";

/**
 * A history with its index, for one who follows an instance: what comes is added to both, and nothing is read again. Who has
 * it decides from it at once, and hands it to nobody who would keep it.
 */
export interface GrowingHistory extends History, Indexed {
  /** Something has been started. */
  start(execution: Execution): void;
  /**
   * Something has become of an execution that was started.
   *
   * @throws {RangeError} there is none with its call.
   */
  settle(execution: Execution): void;
  /** An operator has chosen. */
  choose(choice: Choice): void;
}

/** Goes on with a history that there is already. */
export function growHistory(input: JsonValue, from: Pick<History, "executions" | "choices">): GrowingHistory {
  const executions = [...from.executions];
  const choices = [...from.choices];
  const index = indexHistory(from);
  const places = new Map(executions.map((execution, at) => [execution.callId, { execution, at }]));
  return {
    input,
    executions,
    choices,
    index,
    start: (execution) => {
      const at = executions.length;
      places.set(execution.callId, { execution, at });
      addExecution(index, execution, at);
      executions.push(execution);
    },
    settle: (execution) => {
      const { execution: before, at } = known(places, execution.callId);
      places.set(execution.callId, { execution, at });
      executions[at] = execution;
      replaceExecution(index, before, execution);
    },
    choose: (choice) => {
      choices.push(choice);
      addChoice(index, choice);
    },
  };
}
