// Statements that are made of parts. A batch gets the statement that has the parts which its rows need, and no other: each
// part of a plan costs its start-up at every execution, whether it has something to do or not.
import { type Statement, statement } from "./db.ts";

/** Columns of a batch's input, by their SQL types. */
export type Columns = Readonly<Record<string, string>>;

/** What a statement over a batch does only where a row of it asks for that. */
export interface Part {
  /** What it reads of the input; `moved` hands that on to it. */
  readonly columns: Columns;
  /** Its common table expressions, with commas between them; they read `moved`. Empty for what is woven into the core. */
  readonly text: string;
}

/** A statement in all its compositions, each made once. */
export interface Composed<Name extends string> {
  /** The statement for rows that need these parts, and the columns of its input, in order. */
  with(parts: ReadonlySet<Name>): { readonly statement: Statement; readonly columns: readonly string[] };
}

export interface Composition<Name extends string> {
  readonly verb: string;
  /** What the core reads of the input. */
  readonly core: Columns;
  readonly parts: Readonly<Record<Name, Part>>;
  readonly text: (made: Made<Name>) => string;
}

/** What a composition's text is made with. */
export interface Made<Name extends string> {
  readonly has: (part: Name) => boolean;
  /** The input's columns with their types, as a record set's definition. */
  readonly recordset: string;
  /** The columns of the parts, as the end of a select list over the row that is named so: `, i."steps", …`. */
  readonly handedOn: (row: string) => string;
  /** The parts' expressions, each with a comma before it. */
  readonly texts: string;
}

/** Composes a statement on demand. */
export function compose<Name extends string>(composition: Composition<Name>): Composed<Name> {
  const { verb, core, parts, text } = composition;
  const names = Object.keys(parts) as Name[];
  const known = new Map<string, ReturnType<Composed<Name>["with"]>>();
  const make = (chosen: readonly Name[]) => {
    const ofParts: Columns = Object.assign({}, ...chosen.map((name) => parts[name].columns));
    const columns = { ...core, ...ofParts };
    const made: Made<Name> = {
      has: (part) => chosen.includes(part),
      recordset: Object.entries(columns)
        .map(([name, type]) => `"${name}" ${type}`)
        .join(", "),
      handedOn: (row) =>
        Object.keys(ofParts)
          .map((name) => `, ${row}."${name}"`)
          .join(""),
      texts: chosen.map((name) => (parts[name].text === "" ? "" : `,\n${parts[name].text}`)).join(""),
    };
    return { statement: statement(verb, text(made)), columns: Object.keys(columns) };
  };
  return {
    with(needed) {
      const chosen = names.filter((name) => needed.has(name));
      const key = chosen.join(" ");
      const made = known.get(key) ?? make(chosen);
      known.set(key, made);
      return made;
    },
  };
}

/** The rows of a batch as the input of its statement: each with the columns that the statement reads. */
export function rowsOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
): readonly Readonly<Record<string, unknown>>[] {
  return rows.map((row) =>
    Object.fromEntries(
      columns.flatMap((column) => (row[column] === undefined ? [] : [[column, row[column]] as const])),
    ),
  );
}
