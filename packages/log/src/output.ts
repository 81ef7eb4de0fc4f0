// Owns the way of log lines to a file descriptor. A write for every line costs more than all else about it: what is
// said in one turn of the event loop goes out together.
//
// I1: a line is written by the end of the turn that said it, or as soon as the reader has room.
// I2: an end of the process by itself, by `process.exit` or by an uncaught error loses no line: what is left is written
//     before. For that, nothing is ever on its way in another thread, as it is with asynchronous writes: one that is
//     under way at the exit can be neither awaited nor written again. An end at which no JavaScript runs any more
//     (SIGKILL, an abort, no memory) loses what was said in its last turn.
// I3: lines keep their order, and stay whole also where several processes write into one pipe.
// I4: a reader that is slow holds nobody up, and one that is stuck costs a bounded amount of memory.

import { writeSync } from "node:fs";
import { type DestinationStream, stdTimeFunctions } from "pino";

/** Takes lines, each with its line break. */
export interface Output extends DestinationStream {
  /** Writes all that is left, and waits for the reader, but not for ever. Pino calls it for fatal lines. */
  flushSync(): void;
}

export interface OutputOptions {
  /** Beyond this many bytes, lines are left out and counted until the reader goes on. */
  readonly limitBytes?: number;
  /** How long the end of the process waits for the reader, in milliseconds. */
  readonly lastWaitMs?: number;
}

/** How long a reader without room is left alone. */
const RETRY_MS = 10;
/** What a pipe takes whole, between the writes of others: `PIPE_BUF` of Linux. */
const WHOLE_BYTES = 4_096;

/** An output to a file descriptor. What is left at the end of the process is written then. */
export function openOutput(fd: number, { limitBytes = 16 * 2 ** 20, lastWaitMs = 5_000 }: OutputOptions = {}): Output {
  const lines = openBacklog(limitBytes);
  let isDue = false;
  let isClosed = false;

  /** Whether all is written. */
  const writeOn = (): boolean => {
    try {
      for (let bytes = lines.next(); bytes !== null; bytes = lines.next()) lines.written(writeSync(fd, bytes));
      return true;
    } catch (error) {
      // The reader has no room, or the disk is full: the work goes on, and what was said is kept for a while. Else nobody
      // reads any more, and there is nobody to tell.
      isClosed = !MAY_PASS.has(codeOf(error));
      return isClosed;
    }
  };
  const drain = (): void => {
    isDue = !writeOn();
    // The end of the process writes what is left: it is not kept alive for that.
    if (isDue) setTimeout(drain, RETRY_MS).unref();
  };
  const flushSync = (): void => {
    const untilMs = performance.now() + lastWaitMs;
    while (!writeOn() && performance.now() < untilMs) Atomics.wait(PAUSE, 0, 0, RETRY_MS);
  };
  process.once("exit", flushSync);
  return {
    write: (line) => {
      if (isClosed) return;
      lines.add(line);
      if (isDue) return;
      isDue = true;
      setImmediate(drain);
    },
    flushSync,
  };
}

/** What a later write may not meet any more. */
const MAY_PASS: ReadonlySet<unknown> = new Set(["EAGAIN", "EINTR", "ENOSPC", "EDQUOT"]);

/** Nobody ever wakes who waits for it. */
const PAUSE = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : null;
}

/** Lines that wait to be written. */
interface Backlog {
  add(line: string): void;
  /** What is to be written next, whole lines unless a write has broken one; null where nothing waits. */
  next(): Buffer | null;
  /** So many bytes of it are written. */
  written(sizeBytes: number): void;
}

function openBacklog(limitBytes: number): Backlog {
  /** Each of them goes out in one write. */
  const pieces: string[] = [];
  let lastBytes = 0;
  let waitingBytes = 0;
  let begun: Buffer | null = null;
  let leftOut = 0;

  const append = (line: string): void => {
    const sizeBytes = Buffer.byteLength(line);
    const last = pieces.length - 1;
    if (last >= 0 && lastBytes + sizeBytes <= WHOLE_BYTES) pieces[last] += line;
    else pieces.push(line);
    lastBytes = last + 1 === pieces.length ? lastBytes + sizeBytes : sizeBytes;
    waitingBytes += sizeBytes;
  };
  /** Where there is room again, it is said first what is missing. */
  const hasRoom = (): boolean => {
    if (waitingBytes >= limitBytes) return false;
    if (leftOut > 0) append(leftOutLine(leftOut));
    leftOut = 0;
    return true;
  };
  return {
    add: (line) => {
      if (hasRoom()) append(line);
      else leftOut += 1;
    },
    next: () => {
      if (begun !== null) return begun;
      hasRoom();
      const piece = pieces.shift();
      begun = piece === undefined ? null : Buffer.from(piece);
      return begun;
    },
    written: (sizeBytes) => {
      waitingBytes -= sizeBytes;
      const left = begun?.subarray(sizeBytes);
      begun = left === undefined || left.length === 0 ? null : left;
    },
  };
}

/** Said by the log itself, at the level of a warning. */
function leftOutLine(lines: number): string {
  const what = `"event":"log.left_out","lines":${lines},"msg":"log lines left out"`;
  return `{"level":40${stdTimeFunctions.epochTime()},"pid":${process.pid},${what}}\n`;
}
