import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadAgents } from "../src/load-agents.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdpoint-agents-"));
});
afterAll(() => rm(folder, { recursive: true }));

let modules = 0;

/** A module whose `openAgents` gives this, as a worker is told to load it. */
async function giving(opened: string): Promise<string> {
  modules += 1;
  const path = join(folder, `agents-${modules}.mjs`);
  await writeFile(path, `export const openAgents = async () => (${opened});`);
  return path;
}

const CLOSE = "close: async () => {}";

test("agents and workflows that are bound are loaded as they are given", async () => {
  const opened = await loadAgents(await giving(`{ agents: [{ kind: "agent" }, { kind: "workflow" }], ${CLOSE} }`), {});
  expect(opened.agents).toEqual([{ kind: "agent" }, { kind: "workflow" }]);
});

test.each([
  ["no close", "{ agents: [{ kind: 'agent' }] }", "must give { agents, close }"],
  ["tasks that are no list", `{ agents: [{ kind: "agent" }], tasks: {}, ${CLOSE} }`, "a list of tasks"],
  ["no agent", `{ agents: [], ${CLOSE} }`, "gives no agent: a worker needs one at least"],
  [
    "a workflow that is not bound to its tools",
    `{ agents: [{ kind: "agent" }, { name: "offers", nodes: new Map() }], ${CLOSE} }`,
    "agents[1] of openAgents of",
  ],
  ["a name in place of an agent", `{ agents: ["desk"], ${CLOSE} }`, "for a workflow bindWorkflow"],
])("a module that gives %s is told what is wrong", async (_what, opened, says) => {
  await expect(loadAgents(await giving(opened), {})).rejects.toThrow(says);
});
