/** What a webhook is told: ends of runs, every changed status, or nothing. */
export type NoticePolicy = "done_only" | "state_changes" | "silent";

/** Who is told over HTTP when runs end or change; what signs it is not part of it. */
export interface Webhook {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly policy: NoticePolicy;
  /** Whose runs it is told of; null: every agent's. */
  readonly agentName: string | null;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** Who changed the policy last. */
  readonly changedAtMs: number;
  readonly changedBy: string;
  /** It is told nothing any more; null: it is. */
  readonly disabled: { readonly atMs: number; readonly by: string } | null;
}

/** The columns of a row `w` that a webhook is shown by. */
export const SHOWN_COLUMNS = `w.id, w.name, w.url, w.policy, w.agent_name as "agentName", w.created_at as "createdAt",
  w.created_by as "createdBy", w.changed_at as "changedAt", w.changed_by as "changedBy", w.disabled_at as "disabledAt",
  w.disabled_by as "disabledBy"`;

export interface WebhookRow
  extends Pick<Webhook, "id" | "name" | "url" | "policy" | "agentName" | "createdBy" | "changedBy"> {
  readonly createdAt: Date;
  readonly changedAt: Date;
  readonly disabledAt: Date | null;
  readonly disabledBy: string | null;
}

/** A webhook from its row. */
export function webhookOf({ createdAt, changedAt, disabledAt, disabledBy, ...row }: WebhookRow): Webhook {
  return {
    ...row,
    createdAtMs: createdAt.getTime(),
    changedAtMs: changedAt.getTime(),
    disabled: disabledAt === null || disabledBy === null ? null : { atMs: disabledAt.getTime(), by: disabledBy },
  };
}
