import { round2 } from "./money.ts";
import { answer, type Outcome, refuse } from "./outcome.ts";

const EXPRESSION_MAX_CHARS = 1_000; // bounds the depth of the descent below

/** Thrown inside this file only; `calculate` turns it into a refusal. */
class MalformedExpressionError extends Error {}

/** Arithmetic in doubles with + - * / ( ) and signs, rounded to two decimals and printed with at least one. */
export function calculate(expression: string): Outcome {
  if (!/^[0-9+\-*/(). ]*$/.test(expression)) {
    return refuse("INVALID_EXPRESSION", "Invalid characters in expression");
  }
  if (expression.length > EXPRESSION_MAX_CHARS) {
    return refuse("INVALID_EXPRESSION", `Expression is longer than ${EXPRESSION_MAX_CHARS} characters`);
  }
  try {
    return answer(printAmount(round2(evaluate(tokensOf(expression)))));
  } catch (error) {
    if (error instanceof MalformedExpressionError) return refuse("INVALID_EXPRESSION", error.message);
    throw error;
  }
}

function printAmount(amount: number): string {
  if (Object.is(amount, -0)) return "-0.0";
  return Number.isInteger(amount) ? `${amount}.0` : String(amount);
}

function evaluate(tokens: readonly string[]): number {
  let at = 0;
  const take = (...wanted: string[]): string | null => {
    const token = tokens[at];
    if (token === undefined || !wanted.includes(token)) return null;
    at += 1;
    return token;
  };

  const sum = (): number => {
    let total = product();
    for (let sign = take("+", "-"); sign !== null; sign = take("+", "-")) {
      const next = product();
      total = sign === "+" ? total + next : total - next;
    }
    return total;
  };
  const product = (): number => {
    let total = signed();
    for (let sign = take("*", "/"); sign !== null; sign = take("*", "/")) {
      const next = signed();
      if (sign === "/" && next === 0) throw new MalformedExpressionError("Division by zero");
      total = sign === "*" ? total * next : total / next;
    }
    return total;
  };
  const signed = (): number => {
    if (take("-") !== null) return -signed();
    if (take("+") !== null) return signed();
    return operand();
  };
  const operand = (): number => {
    if (take("(") !== null) {
      const inner = sum();
      if (take(")") === null) throw new MalformedExpressionError("A parenthesis is not closed");
      return inner;
    }
    const token = tokens[at];
    if (token === undefined || !/[0-9]/.test(token)) {
      throw new MalformedExpressionError(`A number is missing before ${token ?? "the end"}`);
    }
    at += 1;
    return Number(token);
  };

  const value = sum();
  if (at < tokens.length) throw new MalformedExpressionError(`Unexpected ${tokens[at]}`);
  if (!Number.isFinite(value)) throw new MalformedExpressionError("The value is too large");
  return value;
}

function tokensOf(expression: string): string[] {
  const tokens = expression.match(/[0-9]+\.?[0-9]*|\.[0-9]+|[-+*/()]|[^ ]/g) ?? [];
  const stray = tokens.find((token) => token === ".");
  if (stray !== undefined) throw new MalformedExpressionError("A point stands without digits");
  return tokens;
}
