/**
 * Does something when the signal fires, at once if it has; gives what ends that. By hand and not through a signal of many
 * sources: such a one costs each look at it, and leaves something of itself with each of them.
 */
export function onAborted(signal: AbortSignal, act: (reason: unknown) => void): () => void {
  if (signal.aborted) {
    act(signal.reason);
    return () => undefined;
  }
  const listener = (): void => act(signal.reason);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}
