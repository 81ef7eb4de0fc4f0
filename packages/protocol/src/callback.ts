import { z } from "zod";

/** Where the other side of a tool reports by itself; `source` is whose secret signs. */
export const CALLBACK_PATH = "/callbacks/:source";

/** `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<the body's bytes>` under one of the source's secrets. */
export const SIGNATURE_HEADER = "holdpoint-signature";

/** A source's name, in its address and among the secrets. */
export const SOURCE_PATTERN = /^[a-z][a-z0-9_-]{0,49}$/;

const reference = z.string().regex(/^[^\p{Cc}\p{Cs}]{1,500}$/u, { error: "must be 1 to 500 characters of plain text" });

/** What has become of an effect, as the other side reports it. */
export const CallbackStatus = z.enum(["pending", "settled", "failed"]);

/** What the other side reports about an effect. */
export const CallbackBody = z
  .strictObject({
    id: z
      .string()
      .regex(/^[\x21-\x7e]{1,200}$/, { error: "must be 1 to 200 visible ASCII characters without spaces" })
      .describe("The event's id: the same one again changes nothing"),
    externalRef: reference.optional().describe("The effect, by the name that the other side has given it"),
    operationId: reference.optional().describe("The effect, by the id that was sent with it"),
    status: CallbackStatus,
    at: z.iso.datetime({ offset: true }).optional().describe("When it happened there; kept by nobody here"),
  })
  .refine(({ externalRef, operationId }) => (externalRef === undefined) !== (operationId === undefined), {
    error: "must name the effect by exactly one of externalRef and operationId",
  });

/** What became of a report. */
export const CallbackReply = z.object({
  duplicate: z.boolean().describe("The event had come before"),
});
