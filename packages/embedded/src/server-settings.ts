import { chownSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LOOPBACK } from "./loopback-port.ts";
import type { Placement } from "./placement.ts";
import { readIfPresent } from "./postmaster-file.ts";

/** Read by postgresql.conf (initialise-data.ts adds the line), written anew at each start. */
export const SETTINGS_FILE = "holdpoint.conf";

/** The port of the last start, so that the address stays the same; `null` before the first one. */
export function rememberedPort(pgData: string): number | null {
  const port = /^port = '(\d+)'$/m.exec(readIfPresent(join(pgData, SETTINGS_FILE)))?.[1];
  return port === undefined ? null : Number(port);
}

/** Writes the server's settings, the given ones last, so that they win. */
export function writeSettings({ pgData, user }: Placement, port: number, settings: Readonly<Record<string, string>>) {
  const all = {
    listen_addresses: LOOPBACK,
    port: String(port),
    unix_socket_directories: "",
    log_error_verbosity: "terse", // the details of an error are row contents, and these do not belong into a log
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  const file = join(pgData, SETTINGS_FILE);
  writeFileSync(`${file}.new`, `${lines.join("\n")}\n`, { mode: 0o600 });
  if (user !== null) chownSync(`${file}.new`, user.uid, user.gid);
  renameSync(`${file}.new`, file);
}
