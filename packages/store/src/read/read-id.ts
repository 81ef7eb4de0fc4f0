import { TypeID } from "typeid-js";
import { ID_PREFIXES, type IdKind } from "../ids.ts";

/** The stored form (a UUID) of an id as people see it; null for a text that is none of this kind. */
export function readId(kind: IdKind, shown: string): string | null {
  try {
    return TypeID.fromString(shown, ID_PREFIXES[kind]).toUUID();
  } catch {
    return null; // the library's way to say that the text is no such id
  }
}
