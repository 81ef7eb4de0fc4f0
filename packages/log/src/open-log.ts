import { showIds } from "@holdpoint/store";
import { type Logger, type LoggerOptions, pino } from "pino";
import { type Output, openOutput } from "./output.ts";

export interface LogOptions extends Pick<LoggerOptions, "redact"> {
  /** The part of the fleet that says it: each of its lines bears this name. */
  readonly service: string;
  readonly level: string;
}

/** The log of a part of the fleet: a line of JSON for each thing that happened, to the standard output of this process. */
export function openLog({ service, level, ...hidden }: LogOptions): Logger {
  const base = { service, pid: process.pid };
  return pino({ level, base, formatters: { log: showIds }, ...hidden }, standardOutput());
}

let output: Output | null = null;

/** All logs of a process write through one: lines of two could not keep their order. */
function standardOutput(): Output {
  // Asked for by Node's own stream: a pipe on which that is open gives no room instead of waiting for its reader.
  output ??= openOutput(process.stdout.fd);
  return output;
}
