/**
 * The middle of the values by size; of an even number, the mean of the two in the middle.
 *
 * @throws {RangeError} there are none.
 */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  if (upper === undefined || lower === undefined) throw new RangeError("There is no median of nothing");
  return (lower + upper) / 2;
}

/**
 * The value that so many of the values do not exceed, by the nearest rank.
 *
 * @param share  0.99 for the 99th percentile.
 * @throws {RangeError} there are none.
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError("There is no percentile of nothing");
  return value;
}
