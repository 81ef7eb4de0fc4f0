export type { LogOptions } from "./open-log.ts";
export { openLog } from "./open-log.ts";
