// Agents whose runs start other runs, in three levels: a boss, leads, hands. A hand's goal says what becomes of it, so that
// a test can bring a tree into every status. Those that keep their process busy have a worker of their own.

import { type Agent, defineAgent, defineChildRuns, defineTimer, defineTool } from "@holdpoint/runtime";
import { type ScriptedTurn, scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

export const BOSS = { name: "boss", version: "1" } as const;
export const LEAD = { name: "lead", version: "1" } as const;
export const HAND = { name: "hand", version: "1" } as const;
/** Hands that keep their process busy. */
export const BUSY_HAND = { name: "busy-hand", version: "1" } as const;
/** Nobody works for it. */
export const NOBODY = { name: "nobody", version: "1" } as const;

/** What a hand may be told to do, and who does it. */
const DOES = {
  done: HAND,
  ask: HAND,
  approve: HAND,
  timer: HAND,
  operator: HAND,
  retry: HAND,
  unknown: HAND,
  grant: HAND,
  look: BUSY_HAND,
  send: BUSY_HAND,
  wait: NOBODY,
} as const;
export type Doing = keyof typeof DOES;

/** Opened in a worker; `FAMILY_BUSY` chooses the hands that keep their process busy. */
export async function openAgents(env: NodeJS.ProcessEnv) {
  const { OUTSIDE_URL: outside = "", FAMILY_BUSY: busy = "" } = env;
  const agents = busy === "" ? [boss(), lead(), hand(outside)] : [busyHand(outside)];
  return { agents, close: async () => undefined };
}

const order = z.object({ order: z.string() });
const HOUR_MS = 3_600_000;

async function ask(url: string, signal: AbortSignal): Promise<{ readonly found?: boolean }> {
  const response = await fetch(url, { signal });
  return response.json() as Promise<{ found?: boolean }>; // the outside of the same tests
}

/** A run that has others do what its goal says: parts separated by commas. */
function starter(
  ref: Agent["name"],
  { below, split }: { below: (part: string) => typeof LEAD | (typeof DOES)[Doing]; split: string },
): Agent {
  const delegate = defineChildRuns({
    name: "delegate",
    description: "Has others do it",
    input: z.object({ parts: z.array(z.string()) }),
    atOnce: 100,
    runs: ({ parts }) => parts.map((part) => ({ agent: below(part), goal: part })),
  });
  return defineAgent({
    name: ref,
    version: "1",
    instructions: "You have others do it.",
    model: scriptedModel([
      (shown) => ({ calls: [{ tool: "delegate", input: { parts: goalOf(shown).split(split) } }] }),
      { text: "All of it is done." },
    ]),
    tools: [delegate],
    complete: () => ({ kind: "succeeded" }),
  });
}

const boss = (): Agent => starter("boss", { below: () => LEAD, split: ";" });
const lead = (): Agent => starter("lead", { below: (part) => DOES[doingOf(part)], split: "," });

function doingOf(goal: string): Doing {
  const [doing = ""] = goal.split(" ");
  if (doing in DOES) return doing as Doing;
  throw new RangeError(`No hand does "${goal}"`);
}

function hand(outside: string): Agent {
  const pay = defineTool({
    name: "approve",
    description: "Pays",
    input: order,
    effect: "unsafe",
    rules: [{ name: "a_manager", ask: { roles: ["manager"] } }],
    execute: async () => "paid",
  });
  const timer = defineTimer({ name: "timer", description: "Waits", input: order, due: () => HOUR_MS });
  const failing = (name: string, retry: { retries: number; firstDelayMs?: number }) =>
    defineTool({
      name,
      description: "Fails",
      input: order,
      effect: "read",
      retry,
      // A mistake of its own: no service is down, which would keep all others of its kind waiting.
      execute: async (): Promise<string> => {
        throw new Error("It fails");
      },
    });
  const tools = [
    pay,
    timer,
    failing("operator", { retries: 0 }),
    failing("retry", { retries: 5, firstDelayMs: HOUR_MS }),
  ];
  return acting(HAND.name, [...tools, unknown(outside), grant(outside)]);
}

/** An effect that was sent and whose reply was lost; its look-up knows nothing until it is told. */
function unknown(outside: string) {
  return defineTool({
    name: "unknown",
    description: "Sends, and loses the reply",
    input: order,
    effect: { lookUp: { settlesWithinMs: 0 } },
    execute: async ({ order: about }, { operationId, signal }): Promise<string> => {
      await ask(`${outside}/send?${new URLSearchParams({ order: about, operation: operationId })}`, signal);
      throw new Error("the reply was lost");
    },
    reconcile: (_, context) => lookUp(outside, context),
  });
}

/** Nobody can tell, until the test says that one can; then the ledger knows. */
async function lookUp(outside: string, { operationId, signal }: { operationId: string; signal: AbortSignal }) {
  const { found: isTold } = await ask(`${outside}/find?operation=told`, signal);
  if (isTold !== true) return { answer: "unknown" } as const;
  const { found } = await ask(`${outside}/find?operation=${operationId}`, signal);
  return found === true ? ({ answer: "happened", output: "sent" } as const) : ({ answer: "did_not_happen" } as const);
}

/** Runs, and reports that a permission is missing, until the permission is there. */
function grant(outside: string) {
  return defineTool({
    name: "grant",
    description: "Changes a setting",
    input: order,
    effect: "read",
    execute: async (_, { signal }) => {
      const { found = false } = await ask(`${outside}/find?operation=permission`, signal);
      return { changed: found, missing: found ? null : "settings:write" };
    },
    outcome: ({ changed }) => (changed ? "succeeded" : "blocked"),
  });
}

function busyHand(outside: string): Agent {
  const look = defineTool({
    name: "look",
    description: "Looks for long",
    input: order,
    effect: "read",
    timeoutMs: 300_000,
    execute: async ({ order: about }, { signal }) => {
      await ask(`${outside}/look?${new URLSearchParams({ order: about })}`, signal);
      return about;
    },
  });
  const send = defineTool({
    name: "send",
    description: "Sends, and waits for the reply",
    input: order,
    effect: { lookUp: { settlesWithinMs: 0 } },
    timeoutMs: 15_000,
    execute: async ({ order: about }, { operationId, signal }) => {
      await ask(`${outside}/send?${new URLSearchParams({ order: about, operation: operationId })}`, signal);
      return about;
    },
    reconcile: (_, context) => lookUp(outside, context),
  });
  return acting(BUSY_HAND.name, [look, send]);
}

/** An agent that does what its goal says, by the tool of that name. */
function acting(
  name: string,
  tools: Agent["tools"] extends ReadonlyMap<string, infer Tool> ? readonly Tool[] : never,
): Agent {
  const turn: ScriptedTurn = (shown) => {
    const goal = goalOf(shown);
    const doing = doingOf(goal);
    if (doing === "done") return { text: "Done." };
    if (doing === "ask") return { text: "Which one?" };
    return { calls: [{ tool: doing, input: { order: goal } }] };
  };
  return defineAgent({
    name,
    version: "1",
    instructions: "You do it.",
    model: scriptedModel([turn, { text: "Done." }]),
    tools,
    complete: (reply, results) => {
      const blocked = results.find(({ result }) => result === "blocked");
      if (blocked !== undefined) return { kind: "blocked", step: blocked.tool, reason: "permission_missing" };
      return reply.endsWith("?") ? null : { kind: "succeeded" };
    },
    onBlocked: "end",
  });
}

function goalOf({ prompt }: Parameters<Extract<ScriptedTurn, (...args: never[]) => unknown>>[0]): string {
  const first = prompt.find(({ role }) => role === "user");
  const [part] = first === undefined || typeof first.content === "string" ? [] : first.content;
  return part?.type === "text" ? part.text : "";
}
