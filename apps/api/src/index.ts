export { buildApi } from "./build-api.ts";
export type { ApiDeps } from "./deps.ts";
export type { Token } from "./tokens.ts";
export { assignTokenRoles } from "./tokens.ts";
