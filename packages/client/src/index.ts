export type { CallOptions, Client, ClientOptions, Input } from "./create-client.ts";
export { createClient } from "./create-client.ts";
export { NoReplyError, ProblemError } from "./errors.ts";
