import type { ModelMessage } from "ai";

/**
 * Works something out of a conversation message by message. What was worked out of the same array before is kept and only
 * gone on with: a conversation grows, and what was said in it stays as it was said.
 *
 * @param begin what nothing gives.
 * @param add adds what the message at this place gives; if it throws, that message is tried again the next time.
 */
export function growing<Made>(
  begin: () => Made,
  add: (made: Made, messages: readonly ModelMessage[], place: number) => void,
): (messages: readonly ModelMessage[]) => Made {
  const known = new WeakMap<readonly ModelMessage[], { readonly made: Made; upTo: number }>();
  return (messages) => {
    const state = known.get(messages) ?? { made: begin(), upTo: 0 };
    known.set(messages, state);
    for (; state.upTo < messages.length; state.upTo += 1) add(state.made, messages, state.upTo);
    return state.made;
  };
}
