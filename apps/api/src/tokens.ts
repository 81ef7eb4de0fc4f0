import { createHash } from "node:crypto";
import { type AccessRole, isAccessRole, ROLE_PATTERN, USER_PATTERN } from "@holdpoint/protocol";
import { type Store, syncRoles } from "@holdpoint/store";
import type { z } from "zod";
import { readEntries } from "./read-entries.ts";

/** Whom a token names, and what its bearer may call at all. */
export interface Bearer {
  readonly user: string;
  readonly access: readonly AccessRole[];
}

/** Somebody who calls: every actor that the api names comes from here. */
export interface Caller extends Bearer {
  /** The approver's roles, from the present assignments. */
  readonly roles: readonly string[];
}

/** A named development token. */
export interface Token {
  readonly token: string;
  readonly user: string;
  /** `requester` and `operator` are access; every other one is an approver's, and assigned when the api starts. */
  readonly roles: readonly string[];
}

const ENTRY = /^([A-Za-z0-9._~-]+)=([^:=]+):(.+)$/;
const SHORTEST_TOKEN = 8;

/** Reads `token=user:role,role;token=user:role`; mistakes name an entry by its place, never by its token. */
export function readTokens(text: string, context: z.RefinementCtx): readonly Token[] {
  const mistake = (message: string) => context.addIssue({ code: "custom", message });
  const tokens = readEntries(text, context, readEntry);
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) mistake("has the same token twice");
  if (text.replaceAll(/[;\s]/g, "") === "") mistake("names nobody");
  return tokens;
}

function readEntry(entry: string): Token | string {
  const [, token, user, list] = ENTRY.exec(entry) ?? [];
  if (token === undefined || user === undefined || list === undefined) return "must look like token=user:role,role";
  if (token.length < SHORTEST_TOKEN) return `its token needs at least ${SHORTEST_TOKEN} characters`;
  if (!USER_PATTERN.test(user)) return "its user must be letters, digits and . _ @ + -";
  const roles = list.split(",").map((role) => role.trim());
  const bad = roles.find((role) => !ROLE_PATTERN.test(role));
  return bad === undefined ? { token, user, roles } : "its roles must be lower-case words, separated by commas";
}

/** Finds whom a token names, or null. Tokens are compared by their hashes, so that time tells nothing about them. */
export function openBearers(tokens: readonly Token[]): (token: string) => Bearer | null {
  const bearers = new Map(
    tokens.map(({ token, user, roles }) => [digest(token), { user, access: roles.filter(isAccessRole) }]),
  );
  return (token) => bearers.get(digest(token)) ?? null;
}

/** Makes the assignments of approver's roles follow the tokens; what people have granted or revoked stays. */
export function assignTokenRoles(store: Store, tokens: readonly Token[]): Promise<void> {
  const grants = tokens.flatMap(({ user, roles }) =>
    roles.filter((role) => !isAccessRole(role)).map((role) => ({ user, role })),
  );
  return syncRoles(store, grants);
}

/** What is kept and compared of a token. */
export function digest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
