import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { EmbeddedServerError } from "./embedded-server-error.ts";

/** The operating system's user that Postgres runs as when we are root. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

// Postgres looks its user up by number and refuses one without a name, so it has to be a user that exists.
const CANDIDATES = ["postgres", "nobody"];

/**
 * Postgres refuses to run as root: as root, the user it runs as; else `null`, it runs as ourselves.
 *
 * @throws {EmbeddedServerError} NO_SERVER_USER: we are root and neither `postgres` nor `nobody` exists.
 */
export function findServerUser(): ServerUser | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of CANDIDATES) {
    const uid = lookUpId("-u", name);
    const gid = lookUpId("-g", name);
    if (uid !== null && gid !== null) return { name, uid, gid };
  }
  throw new EmbeddedServerError(
    "NO_SERVER_USER",
    "Postgres does not run as root, and there is no user to run it as: add a user named postgres, or work as another user",
  );
}

/** Whether the user may go into this folder and all folders above it. The folder exists. */
export function canEnter(user: ServerUser, folder: string): boolean {
  const stat = statSync(folder);
  const executeBit = stat.uid === user.uid ? 0o100 : stat.gid === user.gid ? 0o010 : 0o001;
  if ((stat.mode & executeBit) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || canEnter(user, parent);
}

function lookUpId(flag: "-u" | "-g", name: string): number | null {
  try {
    return Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return null; // `id` exits with 1 for a user that does not exist
  }
}
