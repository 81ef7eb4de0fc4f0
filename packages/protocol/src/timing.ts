import { Cron } from "croner";

/** A pattern of five fields (minute, hour, day, month, weekday), read as the clocks of a zone show it. */
export interface Pattern {
  readonly cron: string;
  /** An IANA name: `Europe/Berlin`. */
  readonly zone: string;
}

/** What is wrong with a pattern or its zone. */
export interface PatternMistake {
  readonly field: keyof Pattern;
  readonly message: string;
}

const ZONE_SHAPE = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/** What is wrong with a pattern, in words for whoever wrote it; null where slots can be found by it. */
export function patternMistake({ cron, zone }: Pattern): PatternMistake | null {
  if (!isZone(zone)) {
    return { field: "zone", message: `"${zone}" is no time zone that is known here: use a name like Europe/Berlin` };
  }
  if (fieldsOf(cron).length !== FIELDS && !NICKNAME.test(cron)) {
    return {
      field: "cron",
      message: `"${cron}" must have five fields (minute, hour, day, month, weekday), like "30 9 * * MON-FRI"`,
    };
  }
  try {
    if (open({ cron, zone }).nextRun(EARLY) !== null) return null;
    return { field: "cron", message: `"${cron}" names a day that never comes` };
  } catch (error) {
    // The library throws errors of its own for nothing else.
    const why = (error instanceof Error ? error.message : "").replace(/^Cron(Pattern|Date): /, "");
    return { field: "cron", message: `"${cron}" is no pattern like "30 9 * * MON-FRI": ${why}` };
  }
}

/**
 * The first slot after a moment, both in milliseconds since the epoch; null where none follows.
 *
 * Where the hour field is `*`, every hour that passes counts. Every other pattern names times of the day: one that the
 * clocks leave out comes at the first moment after the gap, one that they show twice comes once, the first time.
 *
 * @throws {Error} the pattern or the zone is one that `patternMistake` names.
 */
export function nextSlot(pattern: Pattern, afterMs: number): number | null {
  return open(pattern).nextRun(new Date(afterMs))?.getTime() ?? null;
}

const FIELDS = 5;
const NICKNAME = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/;

function fieldsOf(cron: string): readonly string[] {
  return cron.trim().split(/\s+/);
}

/** Any moment from which the rarest pattern, a weekday on 29 February, comes again. */
const EARLY = new Date(0);

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return ZONE_SHAPE.test(zone);
  } catch {
    return false; // how an unknown zone is reported
  }
}

function open({ cron, zone }: Pattern): Cron {
  return new Cron(asTimesOfDay(cron), {
    timezone: zone,
    mode: "5-part",
    fixedTimeRule: "no-wildcard",
    paused: true,
  });
}

/**
 * A pattern whose minutes and hours are lists, where its hour field is not `*`: the library takes only those for times of
 * the day, and leaves out what the others have in a gap.
 */
function asTimesOfDay(cron: string): string {
  const [minute, hour, ...days] = fieldsOf(cron);
  if (minute === undefined || hour === undefined || hour === "*" || hour === "?") return cron;
  return [listed(minute, 59), listed(hour, 23), ...days].join(" ");
}

/** A field with its steps and its `*` written out; what is no step stays for the library to judge. */
function listed(field: string, last: number): string {
  return field
    .split(",")
    .map((part) => listedPart(part, last))
    .join(",");
}

function listedPart(part: string, last: number): string {
  const match = /^(?:\*|(\d+)-(\d+))(?:\/(\d+))?$/.exec(part);
  if (match === null) return part;
  const [, from = "0", to = String(last), step = "1"] = match;
  const [start, end, by] = [Number(from), Number(to), Number(step)];
  if (by < 1 || by > last + 1 || start > end || end > last) return part;
  return Array.from({ length: Math.floor((end - start) / by) + 1 }, (_, index) => start + index * by).join(",");
}
