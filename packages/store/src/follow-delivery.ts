/**
 * A part of statements that settle deliveries (`settled`): the next one of the same run and webhook is due at once. It
 * was put off until the one before it is tried again; that it is found then, too, makes this no more than a hint.
 */
export const FOLLOWED = `
followed as (
  update holdpoint.deliveries f set next_at = holdpoint.clock()
  from settled s
  where s.state <> 'pending' and f.run_id = s.run_id and f.webhook_id = s.webhook_id and f.state = 'pending'
    and f.attempts = 0 and f.version = (
      select min(n.version) from holdpoint.deliveries n
      where n.run_id = s.run_id and n.webhook_id = s.webhook_id and n.state = 'pending' and n.id <> s.id)
)`;
