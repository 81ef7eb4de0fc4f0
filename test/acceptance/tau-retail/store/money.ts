/**
 * The two-decimal number nearest to the exact binary value, exact ties to the even hundredth.
 *
 * Only odd eighths are such ties; `toFixed` decides those away from zero and all others correctly.
 */
export function round2(amount: number): number {
  if (amount === 0) return amount; // toFixed would lose the sign of -0
  const eighths = Math.abs(amount) * 8;
  if (!Number.isInteger(eighths) || eighths % 2 === 0) return Number(amount.toFixed(2));
  const below = Math.floor(Math.abs(amount) * 100);
  return (Math.sign(amount) * (below % 2 === 0 ? below : below + 1)) / 100;
}
