import { chmodSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removePostgres } from "./postgres.ts";

/** A folder for servers that live no longer than this process. */
export interface WorkFolder {
  readonly path: string;
  /** Where its Postgres has its data. */
  readonly postgresDir: string;
  /** Stops its Postgres and removes all of it. */
  remove(): Promise<void>;
}

/**
 * Makes `holdpoint-<use>-<pid>` in the system's temporary folder, which Postgres' own user can go through, and removes
 * what processes of the same use have left behind that were killed.
 */
export async function openWorkFolder(use: string): Promise<WorkFolder> {
  const pattern = new RegExp(`^holdpoint-${use}-(\\d+)$`);
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(pattern.exec(name)?.[1]);
    const path = join(tmpdir(), name);
    if (pid > 0 && !isAlive(pid) && statSync(path).uid === process.getuid?.()) await workFolder(path).remove();
  }
  const path = join(tmpdir(), `holdpoint-${use}-${process.pid}`);
  mkdirSync(path);
  chmodSync(path, 0o755);
  return workFolder(path);
}

function workFolder(path: string): WorkFolder {
  const postgresDir = join(path, "postgres");
  return {
    path,
    postgresDir,
    remove: async () => {
      await removePostgres({ dataDir: postgresDir });
      rmSync(path, { recursive: true, force: true });
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // it lives, as another user
  }
}
