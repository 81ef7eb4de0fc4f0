import { z } from "zod";
import type { Reply } from "./sandbox-request.ts";
import { stripeError } from "./stripe-error.ts";

/** Parses the JSON body of an admin verb and acts on it; anything else is answered with what is wrong. */
export function withJson<T>(body: string, schema: z.ZodType<T>, act: (value: T) => Reply): Reply {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return stripeError(400, { message: "The body is not JSON." });
  }
  const parsed = schema.safeParse(json);
  return parsed.success ? act(parsed.data) : invalid(parsed.error);
}

/** 400, with every mistake and where it is. */
export function invalid(error: z.ZodError): Reply {
  return stripeError(400, { message: z.prettifyError(error) });
}
