import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { Model } from "./define-agent.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The model behind a name: `anthropic/<model>` (ANTHROPIC_API_KEY), `openai/<model>` (OPENAI_API_KEY), or
 * `compatible/<model>` for any server that speaks OpenAI's protocol (HOLDPOINT_MODEL_BASE_URL, HOLDPOINT_MODEL_API_KEY).
 *
 * @throws {TypeError} the name has no known provider, or what the provider needs is not configured; says which.
 */
export function resolveModel(name: string, env: Env): Model {
  const slash = name.indexOf("/");
  const provider = name.slice(0, Math.max(0, slash));
  const modelId = name.slice(slash + 1);
  if (modelId === "") throw new TypeError(`Model "${name}" has no model id: write it as provider/model`);
  switch (provider) {
    case "anthropic":
      return createAnthropic({ apiKey: need(env, "ANTHROPIC_API_KEY", name) })(modelId);
    case "openai":
      return createOpenAI({ apiKey: need(env, "OPENAI_API_KEY", name) })(modelId);
    case "compatible": {
      const apiKey = env.HOLDPOINT_MODEL_API_KEY;
      return createOpenAICompatible({
        name: "compatible",
        baseURL: need(env, "HOLDPOINT_MODEL_BASE_URL", name),
        includeUsage: true,
        ...(apiKey === undefined ? {} : { apiKey }),
      })(modelId);
    }
    default:
      throw new TypeError(`Model "${name}": the provider must be anthropic, openai or compatible`);
  }
}

function need(env: Env, variable: string, name: string): string {
  const value = env[variable];
  if (value === undefined || value === "") throw new TypeError(`Model "${name}" needs ${variable} to be set`);
  return value;
}
