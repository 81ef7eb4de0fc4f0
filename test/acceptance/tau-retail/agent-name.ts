/** Names the agent of the retail tasks, to its workers and to whoever submits a run. */
export const RETAIL_AGENT = { name: "tau-retail", version: "1" } as const;
