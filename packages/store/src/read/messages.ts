import { and, asc, eq, gt } from "drizzle-orm";
import type { Store } from "../db.ts";
import { messages } from "../schema.ts";
import { msOf, type Page, type PageRequest, pageOf, reader, rowsFor } from "./reader.ts";

/** Something that was said in a session. */
export interface MessageView {
  readonly seq: number;
  readonly role: "user" | "assistant";
  readonly author: string;
  readonly text: string;
  readonly runId: string | null;
  readonly atMs: number;
}

/** What was said in a session, from its start; the cursor is the number of the last message. */
export async function listMessages(store: Store, sessionId: string, page: PageRequest): Promise<Page<MessageView>> {
  const afterSeq = page.after === null ? 0 : Number(page.after);
  const rows = await reader(store)
    .select({
      seq: messages.seq,
      role: messages.role,
      author: messages.author,
      text: messages.text,
      runId: messages.runId,
      at: messages.at,
    })
    .from(messages)
    .where(
      and(
        eq(messages.tenantId, store.tenantId),
        eq(messages.sessionId, sessionId),
        gt(messages.seq, Number.isSafeInteger(afterSeq) ? Math.min(afterSeq, MAX_SEQ) : MAX_SEQ),
      ),
    )
    .orderBy(asc(messages.seq))
    .limit(rowsFor(page));
  const views = rows.map(({ at, ...row }) => ({ ...row, atMs: msOf(at) }));
  return pageOf(views, page, ({ seq }) => String(seq));
}

const MAX_SEQ = 2 ** 31 - 1;
