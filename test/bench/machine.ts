import { execFileSync } from "node:child_process";
import { arch, cpus, release, totalmem, type } from "node:os";
import { findRedis } from "@holdpoint/embedded";
import type { Servers } from "./servers.ts";

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  readonly postgres: string;
  /** Null where there is none. */
  readonly redis: string | null;
  /** Of the code, "+" behind it for changes that are in no revision yet. */
  readonly revision: string;
}

export async function describeMachine({ admin, redis }: Servers): Promise<Machine> {
  const { rows } = await admin.query<{ server_version: string }>("show server_version");
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? "unknown processor",
    cores: processors.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()} ${arch()}`,
    node: process.versions.node,
    postgres: rows[0]?.server_version ?? "of unknown version",
    redis: redis === null ? null : redisVersion(),
    revision: revision(),
  };
}

function redisVersion(): string {
  const said = execFileSync(findRedis() ?? "redis-server", ["--version"], { encoding: "utf8" });
  return /v=(\S+)/.exec(said)?.[1] ?? "of unknown version";
}

function revision(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const changed = git("status", "--porcelain").trim() !== "";
    return `${git("rev-parse", "--short", "HEAD").trim()}${changed ? "+" : ""}`;
  } catch {
    return "unknown"; // no git, or no repository: an unpacked archive
  }
}
