import { type Store, statement } from "./db.ts";
import { execute } from "./execute.ts";
import type { Artifact } from "./move.ts";

/** An artifact; without its content where those before it have filled the limit. */
export type LoadedArtifact = Omit<Artifact, "content"> & { readonly content: string | null };

/**
 * Loads artifacts by their hashes, at most so many bytes of content in all. What is not there any more is left out of the
 * answer.
 */
export async function loadArtifacts(
  store: Store,
  { hashes, limitBytes }: { readonly hashes: readonly string[]; readonly limitBytes: number },
): Promise<readonly LoadedArtifact[]> {
  const rows = await execute<ArtifactRow>(store, LOAD, [store.tenantId, hashes, limitBytes]);
  return rows.map((row) => ({
    sha256: row.sha256,
    sizeBytes: row.size_bytes,
    mediaType: row.media_type,
    content: row.content,
  }));
}

type ArtifactRow = {
  readonly sha256: string;
  readonly size_bytes: number;
  readonly media_type: string;
  readonly content: string | null;
};

const LOAD = statement(
  "load_artifacts",
  `select sha256, size_bytes, media_type,
     case when sum(size_bytes) over (order by sha256) <= $3::bigint then content end as content
   from holdpoint.artifacts
   where tenant_id = $1::uuid and sha256 = any($2::text[])
   order by sha256`,
);
