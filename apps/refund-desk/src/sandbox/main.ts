import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startSandbox } from "./server.ts";

const HELP = `The payment sandbox: refunds with Stripe's semantics on Stripe's wire format, on 127.0.0.1.

Usage: node apps/refund-desk/src/sandbox/main.ts [--port N] [--data FILE]

  --port N      port to listen on, 0 to 65535; 0 (default) picks a free one
  --data FILE   append-only file that keeps payments, refunds and keys over a restart; without it, memory only
  --help        this text

It prints one line {"event":"sandbox.listening","port":N} when it is ready and ends on SIGINT or SIGTERM
(forked: also when its parent is gone).
Stripe's endpoints are under /v1 (any key sk_test_…), its own under /sandbox:
  GET ledger, requests, request-log, holds, faults, health
  POST hold, release, pending, settle, clock, faults, faults/clear
`;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  // "disconnect": a parent that forked us is gone, however it ended.
  const stop = Promise.race(["SIGTERM", "SIGINT", "disconnect"].map((event) => once(process, event)));
  const sandbox = await startSandbox({
    ...options,
    nowMs: () => Date.now(),
    newId: (prefix) => `${prefix}_${randomUUID().replaceAll("-", "").slice(0, 24)}`,
    onError: (error) =>
      process.stderr.write(`${JSON.stringify({ event: "sandbox.failed", message: String(error) })}\n`),
  });
  process.stdout.write(`${JSON.stringify({ event: "sandbox.listening", port: sandbox.port })}\n`);
  await stop;
  await sandbox.close();
  return 0;
}

function readOptions(args: string[]): { readonly port: number; readonly dataFile: string | null } | "help" {
  const { values } = parseArgs({
    args,
    options: { port: { type: "string" }, data: { type: "string" }, help: { type: "boolean" } },
  });
  if (values.help === true) return "help";
  const text = values.port ?? "0";
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new Error(`--port must be 0 to 65535, not "${text}"`);
  return { port: Number(text), dataFile: values.data ?? null };
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`payment sandbox: ${error instanceof Error ? error.message : String(error)} (see --help)\n`);
  process.exitCode = 1;
}
// An open channel to a parent would keep the process.
if (process.connected) process.disconnect();
