import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { SOURCE_PATTERN } from "@holdpoint/protocol";
import type { z } from "zod";
import { readEntries } from "./read-entries.ts";

/** What one source of reports signs with. A source has two while it changes them. */
export interface CallbackSecret {
  readonly source: string;
  readonly secret: string;
}

const SHORTEST_SECRET = 16;
const MOST_SECRETS = 2;

/** Reads `source=secret;source2=secret`; mistakes name an entry by its place, never by its secret. */
export function readCallbackSecrets(text: string, context: z.RefinementCtx): readonly CallbackSecret[] {
  const mistake = (message: string) => context.addIssue({ code: "custom", message });
  const secrets = readEntries(text, context, readEntry);
  for (const [source, group] of Map.groupBy(secrets, (each) => each.source)) {
    if (group.length > MOST_SECRETS) mistake(`has more than ${MOST_SECRETS} secrets for ${source}`);
  }
  return secrets;
}

function readEntry(entry: string): CallbackSecret | string {
  const split = entry.indexOf("=");
  if (split < 0) return "must look like source=secret";
  const [source, secret] = [entry.slice(0, split), entry.slice(split + 1)];
  if (!SOURCE_PATTERN.test(source)) return "its source must be a lower-case word of at most 50 characters";
  if (!/^[\x21-\x7e]+$/.test(secret)) return "its secret must be visible ASCII characters without spaces";
  return secret.length < SHORTEST_SECRET
    ? `its secret needs at least ${SHORTEST_SECRET} characters`
    : { source, secret };
}

/** How far a signature's time may be from this process's clock, in seconds. That clock decides nothing else. */
const TOLERANCE_S = 300;

const HEADER = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

/** A report as it came. */
export interface SignedReport {
  readonly source: string;
  /** The signature header; undefined if there was none. */
  readonly signature: string | undefined;
  readonly body: Buffer;
}

/**
 * Judges whether a report is signed under one of its source's secrets, about now. A source that nobody knows costs as
 * much time as a wrong signature.
 */
export function openSignatures(secrets: readonly CallbackSecret[]): (report: SignedReport, nowMs: number) => boolean {
  const bySource = Map.groupBy(secrets, ({ source }) => source);
  const nobodys = [{ source: "", secret: randomBytes(32).toString("hex") }];
  return ({ source, signature, body }, nowMs) => {
    const [, time = "0", given = "0".repeat(64)] = HEADER.exec(signature ?? "") ?? [];
    const matches = (bySource.get(source) ?? nobodys).map(({ secret }) =>
      timingSafeEqual(Buffer.from(given, "hex"), sign(secret, time, body)),
    );
    const isNear = Math.abs(nowMs / 1_000 - Number(time)) <= TOLERANCE_S;
    return isNear && matches.includes(true);
  };
}

function sign(secret: string, time: string, body: Buffer): Buffer {
  return createHmac("sha256", secret).update(`${time}.`).update(body).digest();
}
