import type { JsonValue, StepBody } from "@holdpoint/core";
import { type Artifact, type LoadedArtifact, loadArtifacts, NOT_KEPT, type Store } from "@holdpoint/store";
import type { OwnedView } from "./after-commit.ts";

/** The most that one worker keeps of a run's large outputs, in bytes. */
export const OUTPUTS_LIMIT_BYTES = 64 * 2 ** 20;

/** The whole of each output of which the steps have only the beginning, by its artifact's hash. */
export type Wholes = ReadonlyMap<string, JsonValue>;

/**
 * The large outputs of one run, as long as a worker has it. Steps have only their beginnings, and a node is never given the
 * beginning of what it needs for the whole: what is not here, since it is gone or there is too much, is not passed on.
 */
export class WholeOutputs {
  readonly #store: Store;
  readonly #whole = new Map<string, JsonValue>();
  readonly #asked = new Set<string>();
  #stepsRead = 0;
  #earlierRead: OwnedView["earlier"] = [];
  #leftBytes: number;

  constructor(store: Store, limitBytes = OUTPUTS_LIMIT_BYTES) {
    this.#store = store;
    this.#leftBytes = limitBytes;
  }

  /** All that these steps refer to, as far as it is there; nothing is loaded twice. */
  async of({ history, earlier }: Pick<OwnedView, "history" | "earlier">): Promise<Wholes> {
    const { steps } = history.known;
    const stepsRead = steps.length;
    const unread = [...(earlier === this.#earlierRead ? [] : earlier.flat()), ...steps.slice(this.#stepsRead)];
    const hashes = new Set(unread.flatMap(({ body }) => hashOf(body)));
    const missing = [...hashes].filter((hash) => !this.#asked.has(hash));
    const loaded =
      missing.length === 0 ? [] : await loadArtifacts(this.#store, { hashes: missing, limitBytes: this.#leftBytes });
    [this.#stepsRead, this.#earlierRead] = [stepsRead, earlier];
    for (const hash of missing) this.#asked.add(hash);
    for (const artifact of loaded.filter(isThere)) {
      this.#whole.set(artifact.sha256, outputIn(artifact));
      this.#leftBytes -= artifact.sizeBytes;
    }
    return this.#whole;
  }
}

function hashOf(body: StepBody): readonly string[] {
  if (body.kind !== "tool_result" || body.artifact === undefined || body.artifact === NOT_KEPT) return [];
  return [body.artifact];
}

/** Whether an artifact was loaded with its content. */
export function isThere(artifact: LoadedArtifact): artifact is Artifact {
  return artifact.content !== null;
}

function outputIn({ mediaType, content }: Artifact): JsonValue {
  // Canonical JSON that this runtime wrote.
  return mediaType === "application/json" ? (JSON.parse(content) as JsonValue) : content;
}
