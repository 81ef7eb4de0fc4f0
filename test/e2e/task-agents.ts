// An agent that has its builds done elsewhere. Its goal names what is built; what comes back it repeats as data.

import { defineAgent, defineChildRuns, defineTask } from "@holdpoint/runtime";
import { scriptedModel } from "@holdpoint/testkit/scripted-model";
import { z } from "zod";

export const RELEASE_DESK = { name: "release-desk", version: "1" } as const;

/** Heard of every second, and waited for one more. */
export const CI_BUILD = defineTask({
  name: "ci-build",
  version: "1",
  description: "Builds and tests a branch",
  heartbeatMs: 1_000,
  graceMs: 1_000,
});

export async function openAgents() {
  const build = defineChildRuns({
    name: "build",
    description: "Has a branch built and tested",
    input: z.object({ branch: z.string() }),
    runs: ({ branch }) => [{ agent: CI_BUILD, goal: `build ${branch}`, input: { branch } }],
  });
  const agent = defineAgent({
    ...RELEASE_DESK,
    model: scriptedModel([
      { calls: [{ tool: "build", input: { branch: "main" } }] },
      ({ prompt }) => ({ text: `told: ${JSON.stringify(prompt.at(-1)?.content)}` }),
    ]),
    instructions: "You release what was built.",
    tools: [build],
    complete: () => ({ kind: "succeeded" }),
  });
  return { agents: [agent], tasks: [CI_BUILD], close: async () => undefined };
}
