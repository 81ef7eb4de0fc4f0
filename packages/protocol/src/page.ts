import { z } from "zod";

/** The most that one page of a list holds. */
export const MAX_LIMIT = 200;

/** The part of a list that is wanted. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(50).describe("How many at most"),
  cursor: z
    .string()
    .regex(/^[\x21-\x7e]{1,300}$/, { error: "must be the `next` of the page before" })
    .optional()
    .describe("The `next` of the page before"),
};

/** A part of a list; `next` is the cursor of the part after it, null at the end. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next: z.string().nullable() });

/** Several values in one parameter, separated by commas. */
export const listOf = <Item extends z.ZodType<unknown, string>>(item: Item) =>
  z
    .string()
    .max(500)
    .transform((text) => text.split(","))
    .pipe(z.array(item).max(20))
    .describe("Several are separated by commas");

/** A switch in a query, off unless it is given. */
export const flag = z.stringbool().default(false);
