/** What runs do whose worker's memory is measured: one call each. The first calls of a process are answered at once, to warm it. */
export const BUSY_WORK = { turns: 1, calls: 1, warmUpCalls: 300 } as const;
