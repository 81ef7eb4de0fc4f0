import type { Reply } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { wrap } from "../safe-text.ts";

const NAME_WIDTH = 28;
const INDENT = NAME_WIDTH + 6;

/** Every check, and what to do about those that are not well. */
export function showDoctor({ worst, checks }: Reply<"showDoctor">, { out }: View): string {
  const lines = checks.map(({ name, result, text, todo }) => {
    const mark = paintOf(result, out)(result.padEnd(4));
    const wrapped = wrap(text, { width: out.width, indent: INDENT });
    const more =
      todo === null
        ? ""
        : `${" ".repeat(INDENT)}${out.colours.quiet(wrap(todo, { width: out.width, indent: INDENT }))}\n`;
    return `${mark}  ${name.padEnd(NAME_WIDTH)}${wrapped}\n${more}`;
  });
  return `${lines.join("")}\n${paintOf(worst, out)(SUMMARY[worst])}\n`;
}

const SUMMARY = {
  ok: "Everything is as it has to be.",
  warn: "It works; look at what is marked.",
  fail: "Something is wrong; what is marked says what to do.",
} as const;

function paintOf(result: keyof typeof SUMMARY, { colours }: Output): (text: string) => string {
  if (result === "ok") return colours.good;
  return result === "warn" ? colours.waiting : colours.bad;
}
