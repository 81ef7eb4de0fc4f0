import { createHash } from "node:crypto";
import type { z } from "zod";

/** Somebody who calls: every actor that the api names comes from here. */
export interface Caller {
  readonly user: string;
  readonly roles: readonly string[];
}

/** A named development token. */
export interface Token extends Caller {
  readonly token: string;
}

const ENTRY = /^([A-Za-z0-9._~-]+)=([^:=]+):(.+)$/;
const USER = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$/;
const ROLE = /^[a-z][a-z0-9_-]{0,49}$/;
const SHORTEST_TOKEN = 8;

/** Reads `token=user:role,role;token=user:role`; mistakes name an entry by its place, never by its token. */
export function readTokens(text: string, context: z.RefinementCtx): readonly Token[] {
  const mistake = (message: string) => context.addIssue({ code: "custom", message });
  const tokens = text
    .split(";")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .flatMap((entry, index) => {
      const read = readEntry(entry);
      if (typeof read !== "string") return [read];
      mistake(`entry ${index + 1}: ${read}`);
      return [];
    });
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) mistake("has the same token twice");
  if (text.replaceAll(/[;\s]/g, "") === "") mistake("names nobody");
  return tokens;
}

function readEntry(entry: string): Token | string {
  const [, token, user, list] = ENTRY.exec(entry) ?? [];
  if (token === undefined || user === undefined || list === undefined) return "must look like token=user:role,role";
  if (token.length < SHORTEST_TOKEN) return `its token needs at least ${SHORTEST_TOKEN} characters`;
  if (!USER.test(user)) return "its user must be letters, digits and . _ @ + -";
  const roles = list.split(",").map((role) => role.trim());
  const bad = roles.find((role) => !ROLE.test(role));
  return bad === undefined ? { token, user, roles } : "its roles must be lower-case words, separated by commas";
}

/** Finds the caller that a token names, or null. Tokens are compared by their hashes, so that time tells nothing about them. */
export function openCallers(tokens: readonly Token[]): (token: string) => Caller | null {
  const callers = new Map(tokens.map(({ token, user, roles }) => [digest(token), { user, roles }]));
  return (token) => callers.get(digest(token)) ?? null;
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
