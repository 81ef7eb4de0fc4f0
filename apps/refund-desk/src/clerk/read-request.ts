/** What the customer said so far; `null` is not said yet. */
export interface CustomerRequest {
  readonly orderId: string | null;
  readonly email: string | null;
  /** The customer's own words, shortened to what `quote_refund` takes. */
  readonly reason: string;
  readonly chargedTwice: boolean;
}

const MAX_REASON = 500;
/** Bounded in every part, so that no text takes long. */
const EMAIL = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}/g;
/** ord_4411 · order 4411, order number is 4411, order: #4411 · #4411 · a number alone. */
const ORDER =
  /\bord_(\d{1,12})\b|\border(?:\s+(?:number|no\.?|nr\.?))?(?:\s+is)?\s*[:#]?\s*#?(\d{1,12})\b|#(\d{1,12})\b|^\s*(\d{4,10})\s*[.!]?\s*$/gi;

/** Reads order number, address and reason out of the customer's texts; what was said last counts, as a correction. */
export function readRequest(customerTexts: readonly string[]): CustomerRequest {
  let orderId: string | null = null;
  let email: string | null = null;
  for (const text of customerTexts) {
    email = text.match(EMAIL)?.at(-1)?.toLowerCase() ?? email;
    for (const match of text.replace(EMAIL, " ").matchAll(ORDER)) {
      const number = match.slice(1).find((group) => group !== undefined);
      if (number !== undefined) orderId = `ord_${number}`;
    }
  }
  const words = customerTexts.map((text) => text.trim()).filter((text) => text !== "");
  return {
    orderId,
    email,
    reason: words.join(" ").replace(/\s+/g, " ").slice(0, MAX_REASON) || "no reason given",
    chargedTwice: words.some((text) =>
      /\b(?:charged|paid|billed) twice\b|\bduplicate (?:charge|payment)\b/i.test(text),
    ),
  };
}
