import pc from "picocolors";
import { localTimes } from "./in-words.ts";

/** Tells the story on the terminal, in aligned columns. */
export interface Narrator {
  /** A new chapter. */
  chapter(title: string): void;
  /** Something that happened: when, in milliseconds after the story's start; who; what; and a note at the side. */
  event(line: { readonly atMs: number; readonly who: string; readonly what: string; readonly side?: string }): void;
  /** What somebody does or reads, which no timeline knows: a person, or the director of this story. */
  does(who: string, what: string): void;
  /** Says that something was looked at and is so. @throws {ClaimError} it is not. */
  claim(what: string, holds: boolean): void;
  /** What the system says about the run, in its own words. */
  quote(text: string): void;
  plain(text: string): void;
}

/** Something that the demo shows is not so. */
class ClaimError extends Error {
  readonly code = "CLAIM_FAILED";
  constructor(what: string) {
    super(`this should be so, and is not: ${what}`);
    this.name = "ClaimError";
  }
}

/** Who arranges what happens from outside, with signals and the sandbox's own endpoints. */
export const DIRECTOR = "director";

/** Of a terminal of 100 columns. */
const WIDTH = 99;
const INDENT = 11;
const WHO_WIDTH = 10;
const WHAT_WIDTH = 46;

export function openNarrator(write: (text: string) => void): Narrator {
  let chapters = 0;
  return {
    chapter(title) {
      chapters += 1;
      write(`\n${pc.bold(`${chapters}  ${title}`)}\n`);
    },
    event({ atMs, who, what, side = "" }) {
      const when = `${(atMs / 1_000).toFixed(2)} s`.padStart(9);
      const column = INDENT + WHO_WIDTH + 2;
      const fits = column + Math.max(what.length, WHAT_WIDTH) + 2 + side.length <= WIDTH;
      const beside = fits ? " ".repeat(Math.max(WHAT_WIDTH - what.length, 0) + 2) : `\n${" ".repeat(column)}`;
      const aside = side === "" ? "" : `${beside}${pc.dim(side)}`;
      write(`${pc.dim(when)}  ${paint(who)(who.padEnd(WHO_WIDTH))}  ${wrap(what, column)}${aside}\n`);
    },
    does(who, what) {
      const lines = wrap(localTimes(what, new Date()), INDENT + WHO_WIDTH + 2);
      write(`${" ".repeat(INDENT)}${paint(who)(who.padEnd(WHO_WIDTH))}  ${lines}\n`);
    },
    claim(what, holds) {
      if (!holds) throw new ClaimError(what);
      write(`${" ".repeat(INDENT)}${pc.green("✓")} ${wrap(what, INDENT + 2)}\n`);
    },
    quote: (text) => write(`\n${" ".repeat(INDENT)}${wrap(localTimes(text, new Date()), INDENT)}\n`),
    plain: (text) => write(text),
  };
}

/** Breaks a text at spaces so that it ends before the right margin; further lines begin at the same column. */
function wrap(text: string, column: number): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && column + line.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.join(`\n${" ".repeat(column)}`);
}

function paint(who: string): (text: string) => string {
  if (who === DIRECTOR) return pc.magenta;
  if (who.startsWith("worker")) return pc.cyan;
  return who.startsWith("sweeper") || who.startsWith("supervisor") ? pc.blue : pc.yellow;
}
