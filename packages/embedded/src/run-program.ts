import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Placement } from "./placement.ts";

/** How a program ended: its exit code (`null`: killed at its deadline) and, where asked for, what it printed. */
export interface ProgramEnd {
  readonly exitCode: number | null;
  readonly output: string;
}

const DEADLINE_MS = 120_000;

/**
 * Runs one of Postgres' programs as the server's user, in a session of its own, so that a Ctrl-C in our terminal does
 * not reach it.
 *
 * @param output  `ignore` for a program that leaves a daemon behind: the daemon would keep a pipe open for ever.
 */
export async function runProgram(
  { binDir, user }: Placement,
  [program, ...args]: readonly [string, ...string[]],
  output: "ignore" | "collect",
): Promise<ProgramEnd> {
  const pipe = output === "collect" ? "pipe" : "ignore";
  const child = spawn(join(binDir, program), args, {
    cwd: "/", // the server's user may not be able to enter ours
    detached: true,
    env: { PATH: process.env.PATH, LC_ALL: "C" },
    stdio: ["ignore", pipe, pipe],
    timeout: DEADLINE_MS,
    ...(user === null ? {} : { uid: user.uid, gid: user.gid }),
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text) => chunks.push(text));
  const [exitCode] = await once(child, "close");
  return { exitCode, output: chunks.join("") };
}
