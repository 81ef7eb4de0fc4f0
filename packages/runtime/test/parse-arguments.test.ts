import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode } from "../src/codec.ts";
import { ARGUMENTS_LIMIT_BYTES, freezeArguments, parseArguments } from "../src/parse-arguments.ts";

describe("parseArguments", () => {
  test.each<readonly [string, string | RegExp]>([
    ['{"order":"o-5","amount":30', "not valid JSON"],
    ['{"order":"o-5"}}', "not valid JSON"],
    ["{'order':'o-5'}", "not valid JSON"],
    ['\ufeff{"order":"o-5"}', "not valid JSON"],
    ['{"a":NaN}', "not valid JSON"],
    ["null", "must be a JSON object, not null"],
    ["[1]", "must be a JSON object, not a list"],
    ['"{}"', "must be a JSON object, not a string"],
    ["3000", "must be a JSON object, not a number"],
    ['{"amount":3000,"amount":9000}', 'the key "amount" twice'],
    ['{"a":1,"\\u0061":2}', 'the key "a" twice'],
    ['{"a":[{"b":{"c":1,"x":[],"c":2}}]}', 'the key "a.[].b.c" twice'],
    ['{"__proto__":{"approved":true}}', 'the key "__proto__", which is not allowed'],
    ['{"a":[{"\\u005f_proto__":1}]}', "which is not allowed"],
    ['{"constructor":{"prototype":{"approved":true}}}', 'the key "constructor", which is not allowed'],
    ['{"amount":9007199254740993}', 'The number 9007199254740993 at "amount" would lose digits'],
    ['{"amount":9007199254740992}', "would lose digits"],
    ['{"ids":[1,-1533947986218845197]}', 'The number -1533947986218845197 at "ids.[]" would lose digits'],
    ['{"amount":9007199254740993.0}', "would lose digits"],
    ['{"amount":0.12345678901234567890}', "would lose digits"],
    ['{"amount":1e400}', "would lose digits"],
    ['{"amount":1e-400}', "would lose digits"],
    [`{"a":${"[".repeat(70)}${"]".repeat(70)}}`, "deeper than 64 levels"],
    [`{"a":"${"x".repeat(ARGUMENTS_LIMIT_BYTES)}"}`, /have \d+ bytes; at most 262144/],
  ])("refuses %.60s", (text, problem) => {
    expect(parseArguments(text)).toEqual({
      args: null,
      problem: typeof problem === "string" ? expect.stringContaining(problem) : expect.stringMatching(problem),
    });
  });

  test.each([
    ["", {}],
    [" \n", {}],
    ["{}", {}],
    ['{"amount":"9007199254740993"}', { amount: "9007199254740993" }],
    ['{"a":9007199254740991,"b":-9007199254740991}', { a: 9007199254740991, b: -9007199254740991 }],
    ['{"a":0.1,"b":1.50,"c":100.00,"d":-0.0,"e":0e9}', { a: 0.1, b: 1.5, c: 100, d: -0, e: 0 }],
    [
      '{"a":6.02e23,"b":1E3,"c":5e-324,"d":0.30000000000000004}',
      { a: 6.02e23, b: 1000, c: 5e-324, d: 0.30000000000000004 },
    ],
    ['{"a":{"b":1},"c":{"b":2},"l":[{"b":3},{"b":4}]}', { a: { b: 1 }, c: { b: 2 }, l: [{ b: 3 }, { b: 4 }] }],
    ['{"a":"b","b":"b","x":["a","a"],"\\"{,":"}"}', { a: "b", b: "b", x: ["a", "a"], '"{,': "}" }],
    ['{"constructor":"Ferrari","prototype":1}', { constructor: "Ferrari", prototype: 1 }],
  ])("takes %s", (text, args) => {
    expect(parseArguments(text)).toEqual({ args, problem: null });
  });

  test("says what is wrong in less than 1 KB, whatever it is, and in text that can be stored", () => {
    const hostile = [
      `{"${"k".repeat(5_000)}":1,"${"k".repeat(5_000)}":2}`,
      `{"a":${"9".repeat(50_000)}}`,
      `{"x${"😀".repeat(60)}":1e999}`,
      "[".repeat(200_000),
    ];
    for (const text of hostile) {
      const { problem } = parseArguments(text);
      expect(Buffer.byteLength(problem ?? "none".repeat(1_000))).toBeLessThan(1_000);
      expect(problem?.isWellFormed()).toBe(true);
    }
  });

  test("takes every object that JSON can say as it is: nothing is refused, nothing changes", () => {
    const value = fc.jsonValue({ noUnicodeString: false, maxDepth: 6 });
    const key = fc.string({ unit: "binary" }).filter((name) => name !== "__proto__" && name !== "constructor");
    // Whole numbers beyond 2^53 without exponent are what has to be sent as text.
    const isSafe = (text: string) =>
      !/(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, '""'));
    fc.assert(
      fc.property(fc.dictionary(key, value), (args) => {
        const text = JSON.stringify(args);
        fc.pre(isSafe(text) && !text.includes("__proto__") && !text.includes("constructor"));
        expect(parseArguments(text)).toEqual({ args: JSON.parse(text), problem: null });
      }),
    );
  });

  test("refuses each decimal number exactly where reading it changes it", () => {
    const digits = fc
      .integer({ min: 1, max: 22 })
      .chain((length) => fc.bigInt({ min: 0n, max: 10n ** BigInt(length) }));
    fc.assert(
      fc.property(digits, fc.integer({ min: 0, max: 20 }), (whole, places) => {
        const padded = whole.toString().padStart(places + 1, "0");
        const token = places === 0 ? padded : `${padded.slice(0, -places)}.${padded.slice(-places)}`;
        // What was read, exactly: a double is a whole number of halves of halves, so its decimal text ends.
        const { args } = parseArguments(`{"n":${token}}`);
        const read = Number(token);
        const same =
          places === 0 ? Number.isSafeInteger(read) && BigInt(read) === whole : sameDigits(read, whole, places);
        expect(args !== null).toBe(same);
      }),
    );
  });
});

/** Whether the shortest text of what was read is the number that was written: compared as whole numbers. */
function sameDigits(read: number, whole: bigint, places: number): boolean {
  const [digits = "", exponent = "0"] = read.toString().split("e");
  const [front = "", back = ""] = digits.split(".");
  const scale = Number(exponent) - back.length + places;
  const value = BigInt(front + back);
  return scale >= 0 ? value * 10n ** BigInt(scale) === whole : value === whole * 10n ** BigInt(-scale);
}

describe("freezeArguments", () => {
  test("freezes what a schema gives, and gives it back", () => {
    const data = { at: new Date(0), amount: 9_007_199_254_740_993n, note: undefined, order: "44\u000011" };
    const { args } = freezeArguments(data);
    expect(args).toEqual({
      at: { $date: "1970-01-01T00:00:00.000Z" },
      amount: { $bigint: "9007199254740993" },
      order: "44\ufffd11",
    });
    expect(decode(args)).toEqual({ at: new Date(0), amount: 9_007_199_254_740_993n, order: "44\ufffd11" });
  });

  test.each([[{ amount: Number.NaN }], [{ seen: new Set() }], ["text"], [undefined], [[1]]])(
    "refuses what is no data or no object: %j",
    (data) => {
      expect(freezeArguments(data)).toEqual({ args: null, problem: expect.stringContaining("schema") });
    },
  );
});
