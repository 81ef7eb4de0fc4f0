import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { applyEntry, type Book, type BookEntry, emptyBook } from "./book.ts";

/** The book with its file: nothing is in the book that is not on the disk. */
export interface Journal {
  readonly book: Book;
  /** Appends, forces to the disk, then applies. Synchronous, so no request sees a half-made change. */
  readonly record: (entry: BookEntry) => void;
  readonly close: () => void;
}

/**
 * Opens a journal, one JSON entry a line, and loads it.
 *
 * A last line without its end was being written when the process died; nobody had a reply for it, so it is cut off.
 *
 * @param file  `null` keeps the book in memory only.
 * @throws {Error} a complete line that cannot be read: the file is not a journal, or is damaged.
 */
export function openJournal(file: string | null): Journal {
  const book = emptyBook();
  if (file === null) return { book, record: (entry) => applyEntry(book, entry), close: () => undefined };

  const handle = openSync(file, "a+");
  try {
    const text = readFileSync(handle, "utf8");
    const complete = text.slice(0, text.lastIndexOf("\n") + 1);
    if (complete.length < text.length) ftruncateSync(handle, Buffer.byteLength(complete));
    loadLines(book, complete, file);
  } catch (error) {
    closeSync(handle);
    throw error;
  }
  let sizeBytes = fstatSync(handle).size;
  const record = (entry: BookEntry): void => {
    const line = Buffer.from(`${JSON.stringify(entry)}\n`);
    try {
      for (let written = 0; written < line.length; ) written += writeSync(handle, line, written);
      fsyncSync(handle);
    } catch (error) {
      // Half a line (a full disk) must not stand before the next entry.
      ftruncateSync(handle, sizeBytes);
      throw error;
    }
    sizeBytes += line.length;
    applyEntry(book, entry);
  };
  return { book, record, close: () => closeSync(handle) };
}

function loadLines(book: Book, text: string, file: string): void {
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    try {
      // Written by `record` of this file only; a line of any other shape fails in applyEntry or is named here.
      applyEntry(book, JSON.parse(line) as BookEntry);
    } catch (cause) {
      throw new Error(`line ${index + 1} of ${file} is not an entry of a sandbox journal; move the file away`, {
        cause,
      });
    }
  }
}
