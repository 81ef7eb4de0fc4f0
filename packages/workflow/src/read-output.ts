import type { JsonValue } from "@holdpoint/core";
import { z } from "zod";
import { inWords, toJson } from "./json.ts";
import type { Node } from "./node.ts";
import type { Verdict } from "./scope-values.ts";

/** A value that fits its schema, or why it does not. */
export type Read<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string };

const note = z
  .string()
  .nullish()
  .transform((text) => text ?? null);

/** What comes back from a person who was asked for an answer. */
export function personOutput(answer: z.ZodType): z.ZodType {
  return z.discriminatedUnion("decision", [
    z.object({ decision: z.literal("answered"), note, answer }),
    z.object({ decision: z.enum(["approved", "rejected", "expired"]), note, answer: z.null().default(null) }),
  ]);
}

/** What a judge gives. */
export const VERDICT = z.object({ pass: z.boolean(), feedback: z.string() });
const RELEASE = z.object({ decision: z.enum(["approved", "rejected", "expired"]), note });

/** What a schema makes of a value; a copy, so that whoever is given it may do with it what he likes. */
export function readAs<Value>(schema: z.ZodType<Value>, value: unknown): Read<Value> {
  try {
    const read = schema.safeParse(toJson(value));
    return read.success ? { ok: true, value: read.data } : { ok: false, message: issuesOf(read.error) };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

/** The value that was read. @throws {TypeError} it did not fit. */
export function fitting<Value>(read: Read<Value>): Value {
  if (!read.ok) throw new TypeError(read.message);
  return read.value;
}

/** What one execution of a node has brought, as the nodes after it are given it. */
export function readOutput(node: Node, output: JsonValue): Read<unknown> {
  return node.kind === "gate" ? readVerdict(node, output) : readAs(node.output, output);
}

/** What a gate has said. A release that was not given in time is a no. */
export function readVerdict(node: Extract<Node, { kind: "gate" }>, output: JsonValue): Read<Verdict> {
  if (node.gate !== "approval") return readAs(VERDICT, output);
  const read = readAs(RELEASE, output);
  if (!read.ok) return read;
  const { decision, note } = read.value;
  return { ok: true, value: { pass: decision === "approved", feedback: note ?? decision } };
}

/** Whether nobody has answered in time what a node leaves to an operator then. */
export function isLeftToOperator(node: Node, output: JsonValue): boolean {
  if (!("ask" in node) || node.ask.onDeadline === "reject") return false;
  return readAs(z.object({ decision: z.literal("expired") }), output).ok;
}

/** What was thrown, in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "it threw something that is no Error";
}

const ISSUES = 5;

function issuesOf({ issues }: z.core.$ZodError): string {
  return issues
    .slice(0, ISSUES)
    .map(({ path, message }) => `${inWords(path)}${message}`)
    .join("; ");
}
