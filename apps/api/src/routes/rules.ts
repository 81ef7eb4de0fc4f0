import { type Condition, type JsonValue, judgePolicy, storable, storableText } from "@holdpoint/core";
import type { Verdict } from "@holdpoint/protocol";
import {
  checkSchema,
  denyCalls,
  liftDenial,
  listAgents,
  listDenials,
  type RegisteredTool,
  type Store,
  type StoredDenyRule,
} from "@holdpoint/store";
import type { HandlerDeps } from "../deps.ts";
import { notFound, refusedRule } from "../problem.ts";
import type { Handlers } from "../serve.ts";
import { showDenial, showRule, showTerms } from "../show-policy.ts";
import { unknownAgent } from "./sessions.ts";

/** The rules about tool calls: those of the agents, and what operators have forbidden. */
export function ruleHandlers(
  deps: HandlerDeps,
): Pick<Handlers, "listRules" | "testRules" | "denyCalls" | "liftDenial"> {
  const { store } = deps;
  return {
    async listRules() {
      const [agents, denials] = await Promise.all([listAgents(store), listDenials(store)]);
      const registered = agents.flatMap(({ name, version, tools }) =>
        tools.flatMap(({ rules }) => rules.map((rule) => ({ agent: { name, version }, rule: showRule(rule) }))),
      );
      return { body: { registered, denials: denials.map(showDenial) } };
    },
    async testRules({ body: { agent, tool: name, args } }) {
      const [agents, denials] = await Promise.all([listAgents(store), listDenials(store)]);
      const known = agents.find((each) => each.name === agent.name && each.version === agent.version);
      if (known === undefined) throw await unknownAgent(deps, agent);
      const tool = known.tools.find((each) => each.name === name);
      if (tool === undefined) throw notFound("tool of this agent");
      return { body: verdictOn(tool, args, denials) };
    },
    async denyCalls({ caller, body: { rule, reason } }) {
      const { when, message, ...about } = rule;
      const denied = await denyCalls(store, {
        // Compared with arguments that went through the same.
        rule: { ...about, action: "deny", when: when.map(storableCondition), message: storableText(message) },
        reason: storableText(reason),
        by: caller.user,
      });
      if (!denied) throw refusedRule("rule_in_force");
      const agents = await listAgents(store);
      const tools = new Set(agents.flatMap((agent) => agent.tools.map((tool) => tool.name)));
      const unknownTools = rule.tools.filter((tool) => tool !== "*" && !tools.has(tool));
      return { body: { denial: showDenial(await denialNamed(store, rule.name)), unknownTools } };
    },
    async liftDenial({ caller, body: { name } }) {
      const denial = await denialNamed(store, name);
      if (!(await liftDenial(store, { name, by: caller.user }))) throw notFound("rule in force");
      return { body: showDenial(denial) };
    },
  };
}

/** What would become of a call, in the order in which a worker judges it: its arguments, then the rules. */
function verdictOn(tool: RegisteredTool, args: JsonValue, denials: readonly StoredDenyRule[]): Verdict {
  const { problem, value } = checkSchema(tool.inputSchema, storable(args));
  if (problem !== null) return { kind: "invalid", message: problem };
  const verdict = judgePolicy([...tool.rules, ...denials.map(({ rule }) => rule)], { tool: tool.name, args: value });
  if (verdict.kind !== "needs_approval") return verdict;
  const { rule: name, ...terms } = verdict.approval;
  return { kind: "needs_approval", rule: name, approval: showTerms(terms) };
}

function storableCondition({ argument, is, value }: Condition): Condition {
  return { argument: storableText(argument), is, value: storable(value) };
}

async function denialNamed(store: Store, name: string): Promise<StoredDenyRule> {
  const denial = (await listDenials(store)).find(({ rule }) => rule.name === name);
  if (denial === undefined) throw notFound("rule in force");
  return denial;
}
