import { appendFileSync, chownSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { EmbeddedServerError } from "./embedded-server-error.ts";
import type { Placement } from "./placement.ts";
import { runProgram } from "./run-program.ts";
import { SETTINGS_FILE } from "./server-settings.ts";

export const SUPERUSER = "postgres";

/** Makes an empty database cluster where there is none. It appears complete or not at all, also if we are killed. */
export async function initialiseData(place: Placement): Promise<void> {
  if (existsSync(join(place.pgData, "PG_VERSION"))) return;
  const unfinished = mkdtempSync(`${place.pgData}.unfinished-`);
  if (place.user !== null) chownSync(unfinished, place.user.uid, place.user.gid);
  try {
    await runInitdb(place, unfinished);
    appendFileSync(join(unfinished, "postgresql.conf"), `include_if_exists '${SETTINGS_FILE}'\n`);
    renameSync(unfinished, place.pgData);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(join(place.pgData, "PG_VERSION"))) throw error; // else another process was faster
  }
}

async function runInitdb(place: Placement, folder: string): Promise<void> {
  const { exitCode, output } = await runProgram(
    place,
    // Without a password: the server listens on the loopback address only.
    ["initdb", "-D", folder, "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums"],
    "collect",
  );
  if (exitCode === 0) return;
  throw new EmbeddedServerError("INITDB_FAILED", `initdb could not make ${folder} (exit code ${exitCode}):\n${output}`);
}
