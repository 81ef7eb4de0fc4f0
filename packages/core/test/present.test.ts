import { describe, expect, test } from "vitest";
import type { JsonValue } from "../src/json.ts";
import { type Presentation, present } from "../src/present.ts";

const ARGS: JsonValue = {
  order: "o-5",
  amount: { minor: "3000", currency: "EUR" },
  customer: { name: "Ann", email: "ann@example.com" },
  items: [{ sku: "a", note: "fragile" }, { sku: "b" }],
};

function shown(patch: Partial<Presentation>, args: JsonValue = ARGS) {
  return present(args, { redact: [], amount: null, risk: null, ...patch });
}

describe("present", () => {
  test("shows the arguments as they are where nothing is to be left out", () => {
    expect(shown({})).toEqual({ redactedArgs: ARGS, amount: null, risk: null });
  });

  test("leaves out what it names, at every depth, and nothing else", () => {
    const { redactedArgs } = shown({ redact: ["customer.email", "items.0.note", "order"] });
    expect(redactedArgs).toEqual({
      order: "[redacted]",
      amount: { minor: "3000", currency: "EUR" },
      customer: { name: "Ann", email: "[redacted]" },
      items: [{ sku: "a", note: "[redacted]" }, { sku: "b" }],
    });
    expect(JSON.stringify(redactedArgs)).not.toContain("ann@example.com");
    expect(shown({ redact: ["customer"] }).redactedArgs).toMatchObject({ customer: "[redacted]" });
  });

  test.each(["phone", "order.number", "items.7.note", "items.length", "customer.toString", "constructor"])(
    "changes nothing for what is not there: %s",
    (argument) => {
      expect(shown({ redact: [argument] }).redactedArgs).toEqual(ARGS);
      expect(shown({ redact: [argument] }, null).redactedArgs).toBeNull();
    },
  );

  test("keeps an argument of any name as the argument that it is", () => {
    const args: JsonValue = JSON.parse('{"__proto__":{"secret":1,"open":2}}');
    const { redactedArgs } = shown({ redact: ["__proto__.secret"] }, args);
    expect(JSON.stringify(redactedArgs)).toBe('{"__proto__":{"secret":"[redacted]","open":2}}');
  });

  test("does not change the arguments that it is given", () => {
    const before = JSON.stringify(ARGS);
    shown({ redact: ["customer.email", "items.0.note"] });
    expect(JSON.stringify(ARGS)).toBe(before);
  });

  test("finds the amount, as a string whatever it was", () => {
    const amount = { minor: "amount.minor", currency: "amount.currency" };
    expect(shown({ amount }).amount).toEqual({ minor: "3000", currency: "EUR" });
    expect(shown({ amount }, { amount: { minor: 3000, currency: "EUR" } }).amount).toEqual({
      minor: "3000",
      currency: "EUR",
    });
  });

  test.each([
    {},
    { amount: { minor: "3000" } },
    { amount: { currency: "EUR" } },
    { amount: { minor: null, currency: "EUR" } },
    { amount: { minor: 3000, currency: 978 } },
  ])("names no amount where there is none: %j", (args) => {
    expect(shown({ amount: { minor: "amount.minor", currency: "amount.currency" } }, args).amount).toBeNull();
  });

  test("says what the tool says of its risk", () => {
    const risk = { level: "high", reversible: false } as const;
    expect(shown({ risk }).risk).toEqual(risk);
  });
});
