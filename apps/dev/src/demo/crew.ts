import type { Client } from "@holdpoint/client";
import { readLog } from "../log-file.ts";
import type { Part } from "../part.ts";

/** One working process: which part it belongs to, and the name under which the story speaks of it. */
export interface Hand {
  /** `worker-1a`: the first process of worker-1; after its end comes `worker-1b`. */
  readonly name: string;
  readonly workerId: string;
  readonly pid: number;
  readonly part: Part;
}

/** Who is who among the working processes. */
export interface Crew {
  /** All that there are and were. */
  hands(): Promise<readonly Hand[]>;
  /** The one that owns or did something, by the worker id that the api shows. */
  find(workerId: string): Promise<Hand>;
}

/** Reads who works: the api knows ids and pids, each worker's log which process was started by whom. */
export function openCrew(operator: Client, workers: readonly Part[]): Crew {
  const hands = async (): Promise<readonly Hand[]> => {
    const { items } = await operator.listWorkers({ gone: true, limit: 100 });
    return workers.flatMap((part) =>
      startedBy(part).flatMap((pid, index) => {
        const workerId = items.find((worker) => worker.pid === pid)?.id;
        return workerId === undefined ? [] : [{ name: `${part.name}${letter(index)}`, workerId, pid, part }];
      }),
    );
  };
  return {
    hands,
    async find(workerId) {
      const found = (await hands()).find((hand) => hand.workerId === workerId);
      if (found === undefined) throw new Error(`no log names the process of ${workerId}`);
      return found;
    },
  };
}

/** A text of the api with the story's names in the place of worker ids. */
export async function withNames(text: string, crew: Crew): Promise<string> {
  const hands = await crew.hands();
  return hands.reduce((named, { workerId, name }) => named.replaceAll(`worker ${workerId}`, name), text);
}

function startedBy({ logFile }: Part): readonly number[] {
  const started = readLog(logFile).filter(({ event }) => event === "worker.started");
  return started.flatMap(({ pid }) => (typeof pid === "number" ? [pid] : []));
}

function letter(index: number): string {
  return String.fromCharCode("a".charCodeAt(0) + index);
}
