import { type AgentRef, type JsonObject, storable } from "@holdpoint/core";
import { checkSchema, findAgent, namedOnly, type Store } from "@holdpoint/store";
import { ApiProblem } from "./problem.ts";

/**
 * What is wrong with what a run is to be given, by the schema that its workflow has registered; null if nothing is, or if
 * nobody has registered the agent, which the submission itself says.
 */
export async function inputProblem(
  store: Store,
  { agent, input }: { readonly agent: AgentRef; readonly input?: JsonObject | undefined },
): Promise<ApiProblem | null> {
  const known = await findAgent(store, agent);
  if (known === null) return null;
  // A model is shown the goal alone: what would be passed over must not look as if it had been taken.
  if (known.kind === "agent")
    return input === undefined ? null : invalid("an agent takes no input; say in `goal` what is to be done");
  if (known.inputSchema === null) return null;
  const { problem } = checkSchema(namedOnly(known.inputSchema), storable(input ?? null));
  if (problem === null) return null;
  const missing = input === undefined ? `give what ${agent.name}@${agent.version} takes: ` : "";
  return invalid(`${missing}${problem}`);
}

function invalid(message: string): ApiProblem {
  const mistakes = [{ path: "body.input", message }];
  return new ApiProblem(400, "invalid_request", { detail: `body.input: ${message}`, mistakes });
}
