import type { Client } from "@holdpoint/client";
import { Option } from "commander";
import { type Output, openClient, type World } from "../context.ts";
import { UsageError } from "../exit-codes.ts";

/** What every command has. */
export interface CommonOptions {
  readonly json?: boolean;
}

/** What a command that asks the api works with. */
export interface Asking {
  readonly client: Client;
  readonly out: Output;
  readonly now: Date;
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
    readonly show: (answer: Answer, asking: Asking) => string;
  },
): Promise<void> {
  const client = openClient(world);
  const answer = await work.ask(client);
  const { out } = world;
  out.write(json ? `${JSON.stringify(answer, null, 2)}\n` : work.show(answer, { client, out, now: world.now() }));
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
