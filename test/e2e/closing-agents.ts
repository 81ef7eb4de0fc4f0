// The agents of `agents.ts`, which say when they are closed; told so by the environment, they never come to its end.

import { openAgents as open } from "./agents.ts";

export async function openAgents(env: NodeJS.ProcessEnv) {
  const { agents } = await open(env);
  const close = async (): Promise<void> => {
    process.stdout.write("agents closed\n");
    if (env.AGENTS_HANG === "yes") await new Promise(() => setInterval(() => undefined, 1_000));
  };
  return { agents, close };
}
