import { parseArgs } from "node:util";
import { CONFIG_HELP, readConfig } from "./config.ts";

const HELP = `The api: HTTP for submitters, approvers and operators.

Usage: node apps/api/src/main.ts [--help]

Configuration is read from the environment:
${CONFIG_HELP}
It prints one line {"event":"api.listening","port":N} when it is ready (forked: sends it as a message, too) and drains on
SIGINT or SIGTERM (forked: also when its parent is gone). /openapi.json describes every route.
`;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: "boolean" } } });
  if (values.help === true) {
    process.stdout.write(HELP);
    return;
  }
  const config = readConfig(process.env);
  const stopped = stopSignal();
  // What the api works with takes a while to load; a mistake in the configuration is told before that.
  const { runApi } = await import("./run-api.ts");
  await runApi({ config, stopped, onListening: (port) => tell({ event: "api.listening", port }) });
}

/** The first reason to stop. Signals come twice through some launchers; the second must not end the drain. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve(signal));
    if (process.connected) process.on("disconnect", () => resolve("disconnect"));
  });
}

function tell(message: { readonly event: string; readonly port: number }): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
  if (process.connected) process.send?.(message);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`holdpoint api: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
if (process.connected) process.disconnect();
