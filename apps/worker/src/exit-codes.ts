/** Exit code of a process whose lease was over: start the next one at once. */
export const LEASE_OVER = 75;
/** Exit code of a process that an operator has told to end, and that is to have no successor. */
export const STAY_DOWN = 76;
