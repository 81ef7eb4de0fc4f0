import type { ExplainedRun, Explanation } from "@holdpoint/protocol";
import type { Output, View } from "../context.ts";
import { oneLine, wrap } from "../safe-text.ts";
import { localAndRelative, withLocalTimes } from "../times.ts";

/** Why a run is not moving: the chain of evidence in words, then the same of its live children. */
export function showExplanation({ runs, ancestors, cut }: Explanation, view: View): string {
  const { colours } = view.out;
  const up = ancestors.map(({ id, status }) => `${id} (${status})`);
  const above = up.length === 0 ? "" : `${colours.quiet("Started by")} ${up.join(", for ")}\n\n`;
  const more = cut ? `${colours.quiet("There are more live runs below than are told here.")}\n` : "";
  return `${above}${runs.map((run) => showRun(run, view)).join("\n")}${more}`;
}

function showRun(run: ExplainedRun, view: View): string {
  const { out, now } = view;
  const indent = run.depth * 2;
  const [first, ...rest] = run.reasons;
  const say = (mark: string, text: string) => line(`${mark}${withLocalTimes(text, now)}`, { indent, out });
  const head = line(`${run.depth === 0 ? "" : "child "}${out.colours.title(run.id)}  ${run.status}`, { indent, out });
  const step = run.lastCompleted === null ? "" : say("Last completed: ", run.lastCompleted);
  return [
    head,
    first === undefined ? "" : say("", first.text),
    step,
    ...rest.map(({ text }) => say("- ", text)),
    ...showWays(run, view),
    ...showRecent(run, view),
  ].join("");
}

function showWays({ waysOn, depth }: ExplainedRun, { out, now }: View): readonly string[] {
  if (waysOn.length === 0) return [];
  const indent = depth * 2;
  return [
    line("What would move it:", { indent, out }),
    ...waysOn.map(({ text, command }) => {
      const said = line(`- ${withLocalTimes(text, now)}`, { indent: indent + 2, out });
      return command === null ? said : `${said}${" ".repeat(indent + 6)}${oneLine(command)}\n`;
    }),
  ];
}

/** The newest last, as a history is read. */
function showRecent({ recent, depth }: ExplainedRun, { out, now }: View): readonly string[] {
  const indent = depth * 2;
  return [
    line("Last transitions:", { indent, out }),
    ...recent.toReversed().map(({ event, from, to, actor, reason, at }) => {
      const path = from === null || from === to ? to : `${from} → ${to}`;
      const why = reason === null ? "" : ` (${reason})`;
      return line(`- ${localAndRelative(at, now)}  ${event} by ${actor.kind} ${actor.id}: ${path}${why}`, {
        indent: indent + 2,
        out,
      });
    }),
  ];
}

function line(text: string, { indent, out }: { readonly indent: number; readonly out: Output }): string {
  return `${" ".repeat(indent)}${wrap(text, { width: out.width, indent })}\n`;
}
