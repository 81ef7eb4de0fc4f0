import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const MAIN = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
const LIMIT_MS = 20_000;
const INDENT = 5;
const COLUMNS = 99 - INDENT;

/** As whom a command is run, and against which api. */
interface Caller {
  readonly apiUrl: string;
  readonly token: string;
  readonly signal: AbortSignal;
}

/** Runs `holdpoint` with these arguments; gives what it prints, indented and cut. @throws {Error} it failed. */
export async function runCommand(args: readonly string[], { apiUrl, token, signal }: Caller): Promise<string> {
  const env = { ...process.env, HOLDPOINT_API_URL: apiUrl, HOLDPOINT_TOKEN: token, COLUMNS: String(COLUMNS) };
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env, signal, timeout: LIMIT_MS });
  return inset(stdout);
}

/** A command's output beside the story's margin; what does not fit in a line is cut. */
export function inset(output: string): string {
  const lines = output.split("\n").map((line) => {
    const shown = line.length <= COLUMNS ? line : `${line.slice(0, COLUMNS - 1)}…`;
    return shown === "" ? "" : `${" ".repeat(INDENT)}${shown}`;
  });
  return lines.join("\n");
}
