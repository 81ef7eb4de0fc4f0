import { UsageError } from "./exit-codes.ts";

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A length of time that an option gives, like `30m`, `24h` or `90d`, in milliseconds. @throws {UsageError} it is none. */
export function readDuration(option: string, text: string): number {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = unit === "s" || unit === "m" || unit === "h" || unit === "d" ? UNITS_MS[unit] : null;
  if (amount === undefined || unitMs === null) {
    throw new UsageError(`${option} is "${text}": it must be a length of time like 30m, 24h or 90d`);
  }
  return Number(amount) * unitMs;
}
