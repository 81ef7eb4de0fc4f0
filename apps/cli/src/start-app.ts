import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Starts another app's entry point on our terminal and waits for its end; gives its exit code (128 + the signal's
 * number if a signal ended it). Signals that reach us are its business: in a terminal it gets a Ctrl-C by itself.
 */
export async function startApp(entry: string, args: readonly string[]): Promise<number> {
  const path = fileURLToPath(new URL(`../../${entry}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: "inherit" });
  const passOn = (signal: NodeJS.Signals): void => {
    if (signal === "SIGINT" && process.stdin.isTTY === true) return;
    child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, passOn);
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null]; // what "exit" carries
    return code ?? (signal === null ? 1 : 128 + constants.signals[signal]);
  } finally {
    for (const signal of SIGNALS) process.off(signal, passOn);
  }
}
