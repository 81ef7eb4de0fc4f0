const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How far an instant is from now, in words: `in 23 h`, `5 min ago`, `now`. Rounded down, days from two days on. */
export function relative(iso: string, now: Date): string {
  const aheadMs = Date.parse(iso) - now.getTime();
  const amount = amountOf(Math.abs(aheadMs));
  if (amount === null) return "now";
  return aheadMs > 0 ? `in ${amount}` : `${amount} ago`;
}

/** A length of time in words: `1 s`, `5 min`, `23 h`; rounded down. */
export function duration(milliseconds: number): string {
  return amountOf(milliseconds) ?? "less than 1 s";
}

/** A local instant: `2026-11-30 14:10:26`. */
export function local(iso: string): string {
  const at = new Date(iso);
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${date} ${timeOfDay(at)}`;
}

/** A local instant with its distance from now: `2026-12-01 14:10:26 (in 23 h)`. */
export function localAndRelative(iso: string, now: Date): string {
  return `${local(iso)} (${relative(iso, now)})`;
}

/** A text with each instant in it as local time, and the distance of those that are ahead. */
export function withLocalTimes(text: string, now: Date): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (iso) =>
    Date.parse(iso) > now.getTime() ? localAndRelative(iso, now) : local(iso),
  );
}

/** The local day: `2026-11-30`. */
export function localDay(iso: string): string {
  return local(iso).slice(0, 10);
}

/** The local time of day with milliseconds: `14:10:26.031`. */
export function preciseTime(iso: string): string {
  const at = new Date(iso);
  return `${timeOfDay(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

function timeOfDay(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
}

function amountOf(distanceMs: number): string | null {
  if (distanceMs < SECOND_MS) return null;
  if (distanceMs < MINUTE_MS) return `${Math.floor(distanceMs / SECOND_MS)} s`;
  if (distanceMs < HOUR_MS) return `${Math.floor(distanceMs / MINUTE_MS)} min`;
  if (distanceMs < 2 * DAY_MS) return `${Math.floor(distanceMs / HOUR_MS)} h`;
  return `${Math.floor(distanceMs / DAY_MS)} d`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
