/**
 * What a run that waits for a person does, whoever plays it: a reply that asks for a look, its result, a reply that asks for
 * what somebody has to release; then, released, its result, and a closing reply.
 */
export const HELD_WORK = { beforeHold: 3, steps: 5 } as const;
