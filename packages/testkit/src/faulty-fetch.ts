import type { Reach } from "./fault-point.ts";

/** A fetch with a point before each request and one when the head of its reply has come, or it failed. */
export function faultyFetch(
  fetch: typeof globalThis.fetch,
  { name, reach }: { readonly name: string; readonly reach: Reach },
): typeof globalThis.fetch {
  return async (input, init) => {
    // A stream can be sent only once, so a body that is none of the texts that tools send stays out of the data.
    const body = typeof init?.body === "string" ? init.body : null;
    const { url, method, headers } = new Request(input, { ...init, body, signal: null });
    await reach(`${name}:request`, { kind: "request", url, method, headers: Object.fromEntries(headers), body });
    try {
      return await fetch(input, init);
    } finally {
      await reach(`${name}:reply`);
    }
  };
}
