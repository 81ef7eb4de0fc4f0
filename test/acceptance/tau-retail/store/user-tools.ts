import { addressFrom } from "./order-parts.ts";
import { type Outcome, refuse } from "./outcome.ts";
import { entryOf, type RetailState } from "./state.ts";
import type { ToolInput } from "./tool-inputs.ts";

/** Replaces the user's default address; orders keep theirs. */
export function modifyUserAddress(state: RetailState, input: ToolInput<"modify_user_address">): Outcome {
  const known = entryOf(state.users, input.user_id);
  if (known === undefined) return refuse("USER_NOT_FOUND", "User not found");
  const user = { ...known, address: addressFrom(input) };
  return { ok: true, result: user, change: { user } };
}
