// Owns: joining the jobs of several callers, for one queue. An idle queue sends at once; what comes while the server is
// busy with earlier ones goes together afterwards.
import { toError } from "./time-limit.ts";

interface Waiting<J> {
  readonly jobs: readonly J[];
  readonly isWanted: () => boolean;
  readonly settle: (error: Error | null) => void;
}

interface TogetherOptions<J> {
  readonly send: (jobs: readonly J[]) => Promise<void>;
  /** How many may be sent at a time before others wait for them. */
  readonly atOnce: number;
  /** Most jobs that are joined to one. A caller's own are never divided. */
  readonly maxJoined?: number;
  /** Above this many waiting jobs a caller is refused. */
  readonly maxWaiting?: number;
}

/** `isWanted`: whether the caller still waits; if not, what has not been sent yet is left out. */
export type AddTogether<J> = (jobs: readonly J[], isWanted: () => boolean) => Promise<void>;

/** Each caller's promise settles as its own jobs did. */
export function addTogether<J>(options: TogetherOptions<J>): AddTogether<J> {
  const { send, atOnce, maxJoined = 500, maxWaiting = 20_000 } = options;
  let waiting: Waiting<J>[] = [];
  let jobsWaiting = 0;
  let underWay = 0;

  async function sendAll(group: readonly Waiting<J>[]): Promise<void> {
    underWay += 1;
    let error: Error | null = null;
    try {
      await send(group.flatMap(({ jobs }) => jobs));
    } catch (thrown) {
      error = toError(thrown);
    }
    underWay -= 1;
    for (const { settle } of group) settle(error);
    sendWaiting();
  }

  function sendWaiting(): void {
    while (waiting.length > 0 && underWay < atOnce) {
      const group = nextGroup();
      if (group.length > 0) void sendAll(group);
    }
  }

  function nextGroup(): readonly Waiting<J>[] {
    const group: Waiting<J>[] = [];
    let size = 0;
    let seen = 0;
    for (const entry of waiting) {
      if (size > 0 && size + entry.jobs.length > maxJoined) break;
      seen += 1;
      jobsWaiting -= entry.jobs.length;
      if (!entry.isWanted()) continue;
      group.push(entry);
      size += entry.jobs.length;
    }
    waiting = waiting.slice(seen);
    return group;
  }

  return (jobs, isWanted) =>
    new Promise((resolve, reject) => {
      if (jobsWaiting + jobs.length > maxWaiting && waiting.length > 0) {
        reject(new Error(`More than ${maxWaiting} wake-ups wait to be published`));
        return;
      }
      const settle = (error: Error | null) => (error === null ? resolve() : reject(error));
      waiting.push({ jobs, isWanted, settle });
      jobsWaiting += jobs.length;
      sendWaiting();
    });
}
