import type { Reach } from "./fault-point.ts";

/** What the points need of a tool. */
export interface Tool {
  readonly name: string;
  execute(input: never, context: never): Promise<unknown>;
  reconcile?(input: never, context: never): Promise<unknown>;
}

/** A tool with a point before and after each execution and each look-up, however they end. */
export function faultyTool<T extends Tool>(tool: T, reach: Reach): T {
  const around = async (name: string, work: () => Promise<unknown>): Promise<unknown> => {
    await reach(`${name}:before`);
    try {
      return await work();
    } finally {
      await reach(`${name}:after`);
    }
  };
  const { name, reconcile } = tool;
  const points: Partial<Tool> = {
    execute: (input, context) => around(`tool:${name}`, () => tool.execute(input, context)),
    ...(reconcile === undefined
      ? {}
      : { reconcile: (input, context) => around(`look_up:${name}`, () => reconcile.call(tool, input, context)) }),
  };
  return { ...tool, ...points };
}
