export { buildApi } from "./build-api.ts";
export type { ApiDeps } from "./deps.ts";
export type { Caller, Token } from "./tokens.ts";
