const NARROWEST = 80;
/** Longer lines are hard to read; who asks for them in `COLUMNS` gets them. */
const WIDEST_ON_TERMINAL = 160;
const WIDEST = 400;
const USUAL = 120;

/**
 * Columns that a line may have: the terminal's, up to 160; where the output is no terminal, what `COLUMNS` says, from 80
 * to 400, and 120 where it says no whole number.
 */
export function lineWidth(
  { isTTY, columns }: { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined },
  { COLUMNS = "" }: Readonly<Record<string, string | undefined>>,
): number {
  if (isTTY === true) return within(columns ?? USUAL, WIDEST_ON_TERMINAL);
  return /^[1-9]\d{0,8}$/.test(COLUMNS) ? within(Number(COLUMNS), WIDEST) : USUAL;
}

function within(columns: number, widest: number): number {
  return Math.min(widest, Math.max(NARROWEST, columns));
}
