import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { Pool } from "pg";
import { z } from "zod";
import { findRetailData, loadRetailState } from "../retail-data.ts";
import { migrateStore } from "./schema.ts";
import { buildStoreServer } from "./server.ts";

const HELP = `The retail store as an outside HTTP service.

  node main.ts --database-url <url> [--port <n>] [--data <folder>]

  --database-url  the service's own Postgres database; tables are made where they are missing
  --port          port on 127.0.0.1; 0 (the default) takes a free one
  --data          folder of the tau-retail data; default HOLDPOINT_RETAIL_DATA, else ../shared/data/tau-retail
  --help          this text

Prints one JSON line when it is ready: {"event":"store.ready","port":…,"pid":…}. Ends on SIGTERM or SIGINT, or with its
parent where that started it with an IPC channel.
`;

const Options = z.object({
  "database-url": z.url({ protocol: /^postgres(ql)?$/, error: "must be a postgres:// URL" }),
  port: z.coerce.number().int().min(0).max(65_535).default(0),
  data: z.string().optional(),
});

/** A start that cannot succeed, with what to do about it. */
class UsageError extends Error {}

async function main(): Promise<void> {
  const options = readOptions();
  if (options === null) {
    process.stdout.write(HELP);
    return;
  }
  const folder = options.data ?? findRetailData(process.env);
  if (folder === null) throw new UsageError("the tau-retail data is absent: set --data or HOLDPOINT_RETAIL_DATA");
  const base = await loadRetailState(folder);
  const pool = new Pool({ connectionString: options["database-url"], max: 8, statement_timeout: 10_000 });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on("error", (error) => writeLine(process.stderr, { level: "warn", event: "pool.failed", error: error.name }));
  await migrateStore(pool);
  const server = buildStoreServer({ pool, base });
  await server.listen({ host: "127.0.0.1", port: options.port });
  const { port } = server.server.address() as AddressInfo; // listening on TCP, so an address and not a pipe's name
  writeLine(process.stdout, { event: "store.ready", port, pid: process.pid });
  await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(process, "disconnect")]);
  await server.close();
  await pool.end();
  if (process.connected) process.disconnect();
}

function readOptions(): z.infer<typeof Options> | null {
  const { values } = parseArgs({
    options: {
      "database-url": { type: "string" },
      port: { type: "string" },
      data: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return null;
  const options = Options.safeParse(values);
  if (!options.success) throw new UsageError(z.prettifyError(options.error));
  return options.data;
}

function writeLine(stream: NodeJS.WriteStream, fields: object): void {
  stream.write(`${JSON.stringify(fields)}\n`);
}

try {
  await main();
} catch (error) {
  // The reason's text can hold a host name and a port, never the URL's password: pg does not quote it.
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`retail store: ${message}\nTry --help.\n`);
  process.exitCode = 1;
}
