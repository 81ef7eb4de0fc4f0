/** Timers beyond this fire at once, and no call or model request should last a day. */
export const LONGEST_TIMEOUT_MS = 86_400_000;

export const MOST_RETRIES = 100;

interface Range {
  readonly least: number;
  readonly most?: number;
}

/** Checks the numbers of a definition; `whose` names it in the error. @throws {TypeError} a number is not usable. */
export function wholeNumbers(whose: string) {
  return (name: string, value: number, { least, most = Number.MAX_SAFE_INTEGER }: Range): void => {
    if (Number.isSafeInteger(value) && value >= least && value <= most) return;
    throw new TypeError(`${whose}: ${name} is ${value}; it must be a whole number from ${least} to ${most}`);
  };
}
