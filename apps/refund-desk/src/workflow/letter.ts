import type { Conversation } from "../clerk/conversation.ts";
import type { Decision } from "../clerk/decide.ts";

/** What a closing letter is about; the amount as people read it. */
export interface Letter {
  readonly orderId: string;
  readonly refundId: string;
  readonly amount: string;
}

/** The goal of whoever writes the letter; `feedback` is why the one before was sent back. */
export function letterGoal({ orderId, refundId, amount }: Letter, feedback: string | null): string {
  const again = feedback === null ? "" : `\nThe letter before was sent back: ${feedback}`;
  return `Write the closing letter of a refund case.\nOrder: ${orderId}\nRefund: ${refundId}\nAmount: ${amount}${again}`;
}

/** What a letter has to name and does not, in words for whoever writes it again; null if nothing is missing. */
export function findMissing(letter: string, { orderId, refundId, amount }: Letter): string | null {
  const missing = Object.entries({ "the order": orderId, "the refund's reference": refundId, "the amount": amount })
    .filter(([, value]) => !letter.includes(value))
    .map(([what, value]) => `${what} (${value})`);
  return missing.length === 0 ? null : `it does not name ${missing.join(" and ")}`;
}

/** The letter as the clerk writes it: its first draft forgets the reference, as drafts do. */
export function draftLetter({ customerTexts }: Conversation): Decision {
  const goal = customerTexts.at(-1) ?? "";
  const read = (name: string): string => new RegExp(`^${name}: (.{1,200})$`, "m").exec(goal)?.[1] ?? "";
  const reference = goal.includes("sent back") ? ` Reference: ${read("Refund")}.` : "";
  return { say: `Dear customer, we have refunded ${read("Amount")} for order ${read("Order")}.${reference}` };
}
