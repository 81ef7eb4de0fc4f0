import { ProblemError } from "@holdpoint/client";
import { type Crew, withNames } from "./crew.ts";

/** What somebody is told who asks for what is refused. @throws {Error} it was not refused. */
export async function refusalOf(asked: Promise<unknown>, crew: Crew): Promise<string> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof ProblemError && error.code === "refused") return withNames(error.message, crew);
    throw error;
  }
  throw new Error("this was accepted, and should have been refused");
}
