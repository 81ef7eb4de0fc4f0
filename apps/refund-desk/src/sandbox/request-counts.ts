/** How often one endpoint was asked with one idempotency key (`null`: without). */
export interface RequestCount {
  readonly method: string;
  readonly path: string;
  readonly idempotency_key: string | null;
  readonly count: number;
}

/** More different pairs than this are counted together as `not_listed`. */
const MAX_LISTED = 100_000;

export interface RequestCounts {
  readonly add: (request: Omit<RequestCount, "count">) => void;
  readonly list: () => { readonly requests: readonly RequestCount[]; readonly not_listed: number };
}

/** Counts what arrives at the payment endpoints since the process started; asking the sandbox itself is not counted. */
export function createRequestCounts(): RequestCounts {
  const counts = new Map<string, RequestCount>();
  let notListed = 0;
  return {
    add: (request) => {
      const id = JSON.stringify([request.method, request.path, request.idempotency_key]);
      const known = counts.get(id);
      if (known === undefined && counts.size >= MAX_LISTED) notListed += 1;
      else counts.set(id, { ...request, count: (known?.count ?? 0) + 1 });
    },
    list: () => ({ requests: [...counts.values()], not_listed: notListed }),
  };
}
