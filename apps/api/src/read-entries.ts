import type { z } from "zod";

/**
 * Reads entries that stand behind one another with `;` between them. Mistakes name an entry by its place: what is in it
 * may be a secret.
 *
 * @param read gives the entry, or in words what is wrong with it.
 */
export function readEntries<Entry extends object>(
  text: string,
  context: z.RefinementCtx,
  read: (entry: string) => Entry | string,
): readonly Entry[] {
  return text
    .split(";")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .flatMap((entry, index) => {
      const found = read(entry);
      if (typeof found !== "string") return [found];
      context.addIssue({ code: "custom", message: `entry ${index + 1}: ${found}` });
      return [];
    });
}
