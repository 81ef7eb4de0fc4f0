import { oneLine } from "../safe-text.ts";

/** An amount in its currency: `30.00 EUR`. What is no amount, or of no currency, is shown as it was written. */
export function money({ minor, currency }: { readonly minor: string; readonly currency: string }): string {
  const digits = /^-?\d{1,30}$/.test(minor) ? digitsOf(currency) : null;
  if (digits === null) return oneLine(`${minor.slice(0, 50)} ${currency.slice(0, 10)} (in the smallest unit)`);
  const sign = minor.startsWith("-") ? "-" : "";
  const padded = minor.replace("-", "").padStart(digits + 1, "0");
  const split = padded.length - digits;
  return `${sign}${padded.slice(0, split)}${digits === 0 ? "" : `.${padded.slice(split)}`} ${currency.toUpperCase()}`;
}

/** How many digits the smallest unit has, by ISO 4217; null for what is no currency. */
function digitsOf(currency: string): number | null {
  if (!/^[A-Za-z]{3}$/.test(currency)) return null;
  return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? null;
}
