import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonValue } from "../src/json.ts";
import { applies, type Condition, findDenial, findShadowed, judgePolicy, type PolicyRule } from "../src/policy.ts";
import { aDenial, RULE } from "./builders.ts";

const { rule: _rule, ...APPROVAL } = RULE;

function asks(name: string, tools: readonly string[], when: readonly Condition[] = []): PolicyRule {
  return { name, tools, when, action: "ask", approval: APPROVAL };
}

function isMet(is: Condition["is"], value: JsonValue, found: JsonValue): boolean {
  return applies(asks("rule", ["*"], [{ argument: "amount", is, value }]), { tool: "refund", args: { amount: found } });
}

/** Whether the condition is met by arguments that have no such one. */
function isMetByNothing(is: Condition["is"], value: JsonValue, argument = "amount"): boolean {
  return applies(asks("rule", ["*"], [{ argument, is, value }]), { tool: "refund", args: {} });
}

describe("judgePolicy", () => {
  const call = { tool: "refund", args: { amount: "250.00", currency: "EUR" } };
  const big: Condition = { argument: "amount", is: ">", value: 100 };

  test("lets a call run that no rule is about", () => {
    expect(judgePolicy([], call)).toEqual({ kind: "allowed" });
    expect(judgePolicy([asks("letters", ["send_letter"]), aDenial("send_letter")], call)).toEqual({ kind: "allowed" });
    expect(judgePolicy([asks("small", ["refund"], [{ ...big, value: 250 }])], call)).toEqual({ kind: "allowed" });
  });

  test("asks by the first rule that is about the call", () => {
    const rules = [asks("big", ["letter", "refund"], [big]), asks("all", ["*"])];
    expect(judgePolicy(rules, call)).toEqual({ kind: "needs_approval", approval: { ...RULE, rule: "big" } });
    const small = { ...call, args: { amount: "99.99" } };
    expect(judgePolicy(rules, small)).toMatchObject({ approval: { rule: "all" } });
  });

  test("forbids wherever the rule that does so stands", () => {
    const rules = [asks("all", ["*"]), aDenial("refund", [big]), aDenial("refund")];
    expect(judgePolicy(rules, call)).toEqual({ kind: "denied", rule: "no_refund", message: "It is off." });
    expect(findDenial(rules, call)).toBe(rules[1]);
    expect(findDenial(rules, { ...call, args: {} })).toBe(rules[1]);
    expect(findDenial(rules.slice(0, 1), call)).toBeNull();
  });

  test("needs all conditions of a rule to be met", () => {
    const rule = asks("both", ["refund"], [big, { argument: "currency", is: "=", value: "EUR" }]);
    expect(applies(rule, call)).toBe(true);
    expect(applies(rule, { ...call, args: { amount: 250, currency: "USD" } })).toBe(false);
    expect(applies(rule, { ...call, args: { amount: 5, currency: "EUR" } })).toBe(false);
  });
});

describe("a condition", () => {
  test("compares what is equal, whatever the order of its keys", () => {
    expect(isMet("=", { a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(isMet("!=", { a: 1, b: [2] }, { b: [2], a: 1 })).toBe(false);
    expect(isMet("=", "EUR", "eur")).toBe(false);
    expect(isMet("=", null, null)).toBe(true);
    expect(isMet("=", true, "true")).toBe(false);
    expect(isMet("=", "100.00", 100)).toBe(true);
    expect(isMet("!=", 100, "100.0")).toBe(false);
  });

  test("finds a value in a list, by the same rule", () => {
    expect(isMet("in", ["EUR", "USD"], "USD")).toBe(true);
    expect(isMet("in", ["EUR", "USD"], "GBP")).toBe(false);
    expect(isMet("in", ["1.50"], 1.5)).toBe(true);
    expect(isMet("in", [], "EUR")).toBe(false);
  });

  test("of an argument that is not there is met only by an order, or by being something else", () => {
    expect(isMetByNothing("=", 1)).toBe(false);
    expect(isMetByNothing("=", null)).toBe(false);
    expect(isMetByNothing("in", [1])).toBe(false);
    expect(isMetByNothing("!=", 1)).toBe(true);
    for (const is of [">", ">=", "<", "<="] as const) expect(isMetByNothing(is, 1)).toBe(true);
  });

  test.each([
    "many",
    "",
    "1e3",
    "+5",
    " 5",
    "5 ",
    "5.",
    ".5",
    "0x10",
    "1,000",
    "007",
    "00",
    "-01",
    "00.50",
    "NaN",
    "٣",
    1e41,
    "9".repeat(41),
    null,
    true,
    [],
    {},
  ])("that cannot be judged is met: %j", (found) => {
    for (const is of [">", ">=", "<", "<="] as const) {
      expect(isMet(is, 100, found)).toBe(true);
      expect(isMet(is, found, 100)).toBe(true);
    }
  });

  test("that is no list of values cannot be judged either", () => {
    expect(isMet("in", "EUR", "USD")).toBe(true);
  });

  test("looks into objects and lists", () => {
    const args = { customer: { country: "SE" }, items: [{ sku: "a" }, { sku: "b" }] };
    const finds = (argument: string, value: JsonValue) =>
      applies(asks("rule", ["*"], [{ argument, is: "=", value }]), { tool: "refund", args });
    expect(finds("customer.country", "SE")).toBe(true);
    expect(finds("items.1.sku", "b")).toBe(true);
    expect(finds("items.2.sku", "b")).toBe(false);
    expect(finds("customer.country.name", "SE")).toBe(false);
    expect(finds("items.1.sku.name", "b")).toBe(false);
  });

  test.each(["toString", "constructor", "__proto__", "constructor.name", "amount.length", "hasOwnProperty", ""])(
    "never finds what every object has: %s",
    (argument) => {
      const rule = (is: "=" | "!=") => asks("rule", ["*"], [{ argument, is, value: "Object" }]);
      const args = { amount: "12" };
      expect(applies(rule("="), { tool: "refund", args })).toBe(false);
      expect(applies(rule("!="), { tool: "refund", args })).toBe(true);
    },
  );

  test("finds an argument of such a name where the model sent one", () => {
    const args: JsonValue = JSON.parse('{"__proto__":{"approved":true}}');
    const rule = asks("rule", ["*"], [{ argument: "__proto__.approved", is: "=", value: true }]);
    expect(applies(rule, { tool: "refund", args })).toBe(true);
  });
});

interface Written {
  readonly text: string;
  /** The number times ten to the twentieth. */
  readonly size: bigint;
}

const decimal: fc.Arbitrary<Written> = fc
  .record({
    negative: fc.boolean(),
    whole: fc.oneof(fc.bigInt({ min: 0n, max: 9n }), fc.bigInt({ min: 0n, max: 10n ** 39n })),
    fraction: fc.oneof(fc.constant(""), fc.stringMatching(/^[0-9]{1,20}$/)),
  })
  .map(({ negative, whole, fraction }) => {
    const text = `${whole}${fraction === "" ? "" : `.${fraction}`}`;
    const size = BigInt(`${whole}${fraction.padEnd(20, "0")}`);
    return { text: negative ? `-${text}` : text, size: negative ? -size : size };
  });

/** Numbers that are written without an exponent. */
const number: fc.Arbitrary<Written & { readonly value: number }> = fc
  .tuple(fc.integer(), fc.integer({ min: 0, max: 6 }))
  .map(([digits, scale]) => {
    const value = Number((digits / 10 ** scale).toFixed(scale));
    const [whole = "", fraction = ""] = String(Math.abs(value)).split(".");
    const size = BigInt(whole + fraction.padEnd(20, "0"));
    return { value, text: String(value), size: value < 0 ? -size : size };
  })
  .filter(({ text }) => !text.includes("e"));

function expectOrder(left: JsonValue, right: JsonValue, difference: bigint): void {
  expect(isMet("<", right, left)).toBe(difference < 0n);
  expect(isMet("<=", right, left)).toBe(difference <= 0n);
  expect(isMet(">", right, left)).toBe(difference > 0n);
  expect(isMet(">=", right, left)).toBe(difference >= 0n);
  expect(isMet("=", right, left)).toBe(difference === 0n);
  expect(isMet("!=", right, left)).toBe(difference !== 0n);
}

describe("amounts", () => {
  test("are compared exactly, beyond what a number can hold", () => {
    fc.assert(
      fc.property(decimal, decimal, (left, right) => expectOrder(left.text, right.text, left.size - right.size)),
    );
    expectOrder("9007199254740993", "9007199254740992", 1n);
    expectOrder("0.1000000000000000000000000001", "0.1", 1n);
    expectOrder("-0", "0.00", 0n);
    expectOrder("-1.10", "-1.1", 0n);
  });

  test("are compared alike as numbers and as strings", () => {
    fc.assert(
      fc.property(number, fc.oneof(number, decimal), (left, right) => {
        expectOrder(left.value, right.text, left.size - right.size);
        expectOrder(right.text, left.value, right.size - left.size);
      }),
    );
    expectOrder(0.1, "0.1", 0n);
    expectOrder(100, "99.99", 1n);
  });

  test("that are equal are equal with whatever zeros their fractions end", () => {
    fc.assert(
      fc.property(decimal, fc.integer({ min: 1, max: 15 }), ({ text }, zeros) => {
        expectOrder(text, `${text}${text.includes(".") ? "" : "."}${"0".repeat(zeros)}`, 0n);
      }),
    );
  });

  test("are none with zeros before them: those are names, equal to themselves alone", () => {
    fc.assert(
      fc.property(decimal, fc.integer({ min: 1, max: 15 }), ({ text }, zeros) => {
        const name = text.replace(/\d/, (digit) => `${"0".repeat(zeros)}${digit}`);
        for (const is of [">", ">=", "<", "<=", "!="] as const) expect(isMet(is, text, name)).toBe(true);
        expect(isMet("=", text, name)).toBe(false);
        expect(isMet("in", [text, Number(text)], name)).toBe(false);
        expect(isMet("=", name, name)).toBe(true);
      }),
    );
    expect(isMet("=", 7, "007")).toBe(false);
    expect(isMet("in", [7, "7", "007.0"], "007")).toBe(false);
    expect(isMet("in", ["007"], "007")).toBe(true);
  });
});

describe("findShadowed", () => {
  const condition = (is: Condition["is"], value: JsonValue, argument = "amount"): Condition => ({
    argument,
    is,
    value,
  });

  test.each<[string, readonly Condition[], readonly Condition[]]>([
    ["no conditions at all", [], [condition(">", 5)]],
    ["the same condition", [condition("!=", "x")], [condition("!=", "x"), condition(">", 1, "other")]],
    ["a lower bound below", [condition(">", "100")], [condition(">", "1000")]],
    ["the same bound, met by it as well", [condition(">=", 100)], [condition(">", 100)]],
    ["an upper bound above", [condition("<", 100)], [condition("<", "99.99")]],
    ["the same upper bound, met by it as well", [condition("<=", 100)], [condition("<", 100)]],
    ["a bound that one value meets", [condition(">", 100)], [condition("=", "101")]],
    ["a list with all its values", [condition("in", ["eur", "usd"])], [condition("in", ["usd"])]],
    ["another value", [condition("!=", "eur")], [condition("=", "usd")]],
  ])("names the rule that stands behind %s", (_, wider, narrower) => {
    expect(findShadowed([asks("wide", ["refund"], wider), asks("narrow", ["refund"], narrower)])).toEqual({
      rule: "narrow",
      by: "wide",
    });
  });

  test.each<[string, PolicyRule, PolicyRule]>([
    ["a narrower rule", asks("a", ["*"], [condition(">", 1_000)]), asks("b", ["*"], [condition(">", 100)])],
    [
      "the same bound, not met by it",
      asks("a", ["*"], [condition(">", 100)]),
      asks("b", ["*"], [condition(">=", 100)]),
    ],
    [
      "the same upper bound, not met by it",
      asks("a", ["*"], [condition("<", 9)]),
      asks("b", ["*"], [condition("<=", 9)]),
    ],
    ["bounds to both sides", asks("a", ["*"], [condition("<", 100)]), asks("b", ["*"], [condition(">", 1_000)])],
    ["an upper bound below", asks("a", ["*"], [condition("<", 5)]), asks("b", ["*"], [condition("<", 9)])],
    ["another argument", asks("a", ["*"], [condition(">", 1)]), asks("b", ["*"], [condition(">", 2, "other")])],
    ["words that have no order", asks("a", ["*"], [condition(">", "x")]), asks("b", ["*"], [condition(">", "y")])],
    [
      "a list that lacks a value",
      asks("a", ["*"], [condition("in", [1])]),
      asks("b", ["*"], [condition("in", [1, 2])]),
    ],
    ["a list that is none", asks("a", ["*"], [condition("in", [1])]), asks("b", ["*"], [condition("in", 1)])],
    ["another tool", asks("a", ["letter"]), asks("b", ["refund"])],
    ["a rule that forbids", aDenial("refund"), asks("b", ["refund"])],
  ])("lets a rule be that stands behind %s", (_, before, after) => {
    expect(findShadowed([before, after])).toBeNull();
  });

  test("means what it says: a shadowed rule never decides", () => {
    const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom("1", "2.0", "x"));
    const is = fc.constantFrom<Condition["is"]>("=", "!=", ">", ">=", "<", "<=");
    const when = fc.array(fc.record({ argument: fc.constantFrom("a", "b"), is, value }), { maxLength: 2 });
    const args = fc.record({ a: value, b: value }, { requiredKeys: [] });
    fc.assert(
      fc.property(when, when, args, (first, second, given) => {
        const rules = [asks("first", ["*"], first), asks("second", ["*"], second)];
        const verdict = judgePolicy(rules, { tool: "refund", args: given as JsonValue });
        const decidesSecond = verdict.kind === "needs_approval" && verdict.approval.rule === "second";
        expect(decidesSecond && findShadowed(rules) !== null).toBe(false);
      }),
    );
  });
});

describe("numbers with exponents", () => {
  test("are compared like all others", () => {
    expect(isMet("<", 100, 1e21)).toBe(false);
    expect(isMet(">", "999999999999999999999", 1e21)).toBe(true);
    expect(isMet("<", 1, 1e-7)).toBe(true);
    expect(isMet(">", 0, 1e-7)).toBe(true);
  });
});
