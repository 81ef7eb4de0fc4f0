/** Shows minor units (a decimal string) in a currency's own digits: `("18900", "eur")` gives `EUR 189.00`. */
export function formatMoney(amountMinor: string, currency: string): string {
  const code = currency.toUpperCase();
  const digits = new Intl.NumberFormat("en", { style: "currency", currency: code }).resolvedOptions();
  const scale = digits.maximumFractionDigits ?? 2;
  const padded = amountMinor.padStart(scale + 1, "0");
  const split = padded.length - scale;
  return scale === 0 ? `${code} ${padded}` : `${code} ${padded.slice(0, split)}.${padded.slice(split)}`;
}
