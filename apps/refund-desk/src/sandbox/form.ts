import { createHash } from "node:crypto";

/** Decoded parameters of a form or a query: plain fields, and the entries of `metadata[...]`. */
export interface FormParams {
  readonly fields: ReadonlyMap<string, string>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Decodes `a=1&metadata[x]=y`. A parameter that comes twice counts with its last value, as on Stripe. */
export function parseForm(text: string): FormParams {
  const fields = new Map<string, string>();
  const metadata: [string, string][] = [];
  for (const [name, value] of new URLSearchParams(text)) {
    const entry = /^metadata\[([^\]]+)\]$/.exec(name)?.[1];
    if (entry === undefined) fields.set(name, value);
    else metadata.push([entry, value]);
  }
  return { fields, metadata: Object.fromEntries(metadata) };
}

/** A hash that is equal for two requests with the same endpoint and parameters, whatever their order. */
export function fingerprintRequest(endpoint: string, params: FormParams): string {
  const sorted = (entries: Iterable<[string, string]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
  const canonical = JSON.stringify([endpoint, sorted(params.fields), sorted(Object.entries(params.metadata))]);
  return createHash("sha256").update(canonical).digest("hex");
}
