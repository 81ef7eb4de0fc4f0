const BEGIN = "<!-- results: begin, written by `pnpm bench --write`, not by hand -->";
const END = "<!-- results: end -->";

/**
 * The document with other results between its marks.
 *
 * @throws {Error} it does not have the two marks, once each and in order.
 */
export function withResults(document: string, results: string): string {
  const begin = document.indexOf(BEGIN);
  const end = document.indexOf(END);
  const once = document.lastIndexOf(BEGIN) === begin && document.lastIndexOf(END) === end;
  if (begin < 0 || end < begin || !once) {
    throw new Error(`BENCHMARKS.md must have the lines "${BEGIN}" and "${END}", once each and in this order`);
  }
  return `${document.slice(0, begin)}${BEGIN}\n\n${results.trim()}\n\n${document.slice(end)}`;
}
