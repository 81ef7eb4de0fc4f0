/** Text that people or models wrote, without control characters: it may not move the cursor or rename a terminal. */
export function safe(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to be replaced
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "�");
}

/** The same on one line. */
export function oneLine(text: string): string {
  return safe(text.replaceAll(/\s+/g, " ").trim());
}

/** Breaks a text at spaces so that no line is longer than the width, with further lines indented. */
export function wrap(text: string, { width, indent }: { readonly width: number; readonly indent: number }): string {
  const paragraphs = safe(text).split("\n");
  const lines = paragraphs.flatMap((paragraph) => wrapLine(paragraph, Math.max(20, width - indent)));
  return lines.join(`\n${" ".repeat(indent)}`);
}

/** Breaks one line at spaces; a word that is too long is broken, too. */
export function wrapLine(text: string, width: number): readonly string[] {
  const lines = [""];
  for (const word of text.split(" ").flatMap((whole) => piecesOf(whole, width))) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

function piecesOf(word: string, width: number): readonly string[] {
  const count = Math.max(1, Math.ceil(word.length / width));
  return Array.from({ length: count }, (_, index) => word.slice(index * width, (index + 1) * width));
}
