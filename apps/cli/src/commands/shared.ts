import type { Client } from "@holdpoint/client";
import { Option } from "commander";
import { type Output, openClient, type View, type World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";

/** What every command has. */
export interface CommonOptions {
  readonly json?: boolean;
}

const MAX_PAGES = 100;
const PAGE_SIZE = 200;

export const jsonOption = (): Option => new Option("--json", "print the api's answer as JSON");
export const limitOption = (): Option =>
  new Option("--limit <n>", `how many at most, 1 to ${PAGE_SIZE}`).argParser(readLimit).default(50);

/** Asks the api and prints its answer: as JSON, or as `show` puts it for a person. */
export async function askAndPrint<Answer>(
  world: World,
  { json = false }: CommonOptions,
  work: {
    readonly ask: (client: Client) => Promise<Answer>;
    readonly show: (answer: Answer, view: View) => string;
    /** Who asks; by default whoever the environment names. */
    readonly open?: (world: World) => Client;
  },
): Promise<void> {
  const { open = openClient } = work;
  const answer = await work.ask(open(world));
  const { out } = world;
  out.write(json ? `${JSON.stringify(answer, null, 2)}\n` : work.show(answer, { out, now: world.now() }));
}

/** All items of a list, page by page. */
export async function readAll<Item>(
  page: (part: {
    readonly limit: number;
    readonly cursor?: string;
  }) => Promise<{ readonly items: readonly Item[]; readonly next: string | null }>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const part = await page({ limit: PAGE_SIZE, ...(cursor === null ? {} : { cursor }) });
    items.push(...part.items);
    cursor = part.next;
    if (cursor === null) break;
  }
  return items;
}

/** Says that a list goes on, where it does. */
export function andMore(next: string | null, { colours }: Output): string {
  return next === null ? "" : `${colours.quiet("… there are more: raise --limit, or name what you look for")}\n`;
}

function readLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= PAGE_SIZE) return limit;
  throw new UsageError(`--limit is "${text}": it must be a whole number from 1 to ${PAGE_SIZE}`);
}

type Json = ReturnType<typeof JSON.parse>;

/** JSON that an option gives, itself or as `@file`. @throws {UsageError} it is none, or the file cannot be read. */
export async function readJson(world: World, option: string, text: string): Promise<Json> {
  const content = text.startsWith("@") ? await readFileOf(world, option, text.slice(1)) : text;
  try {
    return JSON.parse(content);
  } catch {
    throw new UsageError(`${option} must be JSON, or @ and the name of a file with JSON`);
  }
}

async function readFileOf(world: World, option: string, path: string): Promise<string> {
  try {
    return await world.readText(path);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new UsageError(`${option}: the file ${path} cannot be read (${why})`);
  }
}

/** An agent and its version, as one argument. */
export function readAgent(text: string): { readonly name: string; readonly version: string } {
  const at = text.lastIndexOf("@");
  if (at > 0 && at < text.length - 1) return { name: text.slice(0, at), version: text.slice(at + 1) };
  throw new UsageError(`"${text}" must be an agent and its version, like refund-desk@1`);
}
