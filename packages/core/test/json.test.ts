import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, type JsonValue, storable, storableText } from "../src/json.ts";

const json = fc.jsonValue() as fc.Arbitrary<JsonValue>; // what it makes is JSON; its type allows undefined nowhere

describe("canonicalJson", () => {
  test.each<readonly [JsonValue, string]>([
    [{ b: 1, a: { d: [2, { z: null, y: true }], c: "x" } }, '{"a":{"c":"x","d":[2,{"y":true,"z":null}]},"b":1}'],
    [{ 10: "ten", 9: "nine", B: 0, a: 0, ä: 0, "": 0 }, '{"":0,"10":"ten","9":"nine","B":0,"a":0,"ä":0}'],
    [-0, "0"],
    [[1e21, 1e-7, 0.1, 9007199254740991], "[1e+21,1e-7,0.1,9007199254740991]"],
    ['\u0000\b\n"\\\u007f\u2028é😀', '"\\u0000\\b\\n\\"\\\\\u007f\u2028é😀"'],
    ["\ud800", '"\\ud800"'],
    [[], "[]"],
    [{}, "{}"],
  ])("writes %j", (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test.each([undefined, Number.NaN, Number.POSITIVE_INFINITY, () => 1, Symbol("s"), 1n])(
    "refuses what is no JSON: %s",
    (value) => {
      // What the type forbids, untyped code can still bring.
      expect(() => canonicalJson({ note: value } as unknown as JsonValue)).toThrow("is no JSON");
    },
  );

  test("sorts keys by their UTF-16 units, as RFC 8785 asks", () => {
    expect(canonicalJson({ "\ufb33": 1, "😀": 2, "€": 3, "\r": 4, "1": 5 })).toBe(
      '{"\\r":4,"1":5,"€":3,"😀":2,"\ufb33":1}',
    );
  });

  test("takes __proto__ for a key like any other", () => {
    const value = JSON.parse('{"b":1,"__proto__":{"admin":true},"constructor":2}');
    expect(canonicalJson(value)).toBe('{"__proto__":{"admin":true},"b":1,"constructor":2}');
  });

  test("is the same text whatever order the keys came in, and the same value", () => {
    const record = fc.dictionary(fc.string({ unit: "binary" }), json);
    fc.assert(
      fc.property(record, (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
        expect(canonicalJson(JSON.parse(canonicalJson(value)))).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("storableText", () => {
  test.each([
    ["plain", "plain"],
    ["a\u0000b", "a\ufffdb"],
    ["\u0000\u0000", "\ufffd\ufffd"],
    ["\ud83d\ude00", "\ud83d\ude00"],
    ["\ud83d", "\ufffd"],
    ["\ude00", "\ufffd"],
    ["\ude00\ud83d", "\ufffd\ufffd"],
    ["\ud83d\ud83d\ude00\ude00", "\ufffd\ud83d\ude00\ufffd"],
    ["\u0001\u001f\u007f\ufeff\uffff\u202e", "\u0001\u001f\u007f\ufeff\uffff\u202e"],
  ])("makes %j storable", (text, stored) => {
    expect(storableText(text)).toBe(stored);
  });

  test("leaves no NUL and nothing ill-formed, and keeps the length", () => {
    const text = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));
    const hostile = fc.oneof(
      text,
      fc.array(fc.constantFrom("\u0000", "\ud800", "\udc00", "a")).map((units) => units.join("")),
    );
    fc.assert(
      fc.property(hostile, (given) => {
        const stored = storableText(given);
        expect(stored).toHaveLength(given.length);
        expect(stored.includes("\u0000")).toBe(false);
        expect(encodeURIComponent(stored)).toBeTypeOf("string"); // throws for a lone surrogate
        expect(storableText(stored)).toBe(stored);
      }),
    );
  });
});

describe("storable", () => {
  test("cleans values and keys at every depth, and nothing else", () => {
    const hostile = { "k\u0000": ["a\ud800", { deep: "\udc00" }, 1, null, true], fine: "x" };
    expect(storable(hostile)).toEqual({ "k\ufffd": ["a\ufffd", { deep: "\ufffd" }, 1, null, true], fine: "x" });
  });

  test("keeps __proto__ as a key of its own", () => {
    const stored = storable(JSON.parse('{"__proto__":{"admin":"\\u0000"}}'));
    expect(Object.keys(stored)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(stored)).toBe(Object.prototype);
    expect(JSON.stringify(stored)).toBe('{"__proto__":{"admin":"\ufffd"}}');
  });

  test("loses no property where keys become equal, whatever order they came in", () => {
    const entries = [
      ["a\u0000", 1],
      ["a\ufffd", 2],
      ["a\ud800", 3],
      ["b", 4],
    ] as const;
    const stored = { "a\ufffd\ufffd": 1, "a\ufffd": 2, "a\ufffd\ufffd\ufffd": 3, b: 4 };
    expect(storable(Object.fromEntries(entries))).toEqual(stored);
    expect(storable(Object.fromEntries(entries.toReversed()))).toEqual(stored);
  });

  test("keeps every property, and the digest of what is stored does not depend on the order of keys", () => {
    const hostileKey = fc
      .array(fc.constantFrom("\u0000", "\ud800", "\udc00", "\ufffd", "a"))
      .map((units) => units.join(""));
    fc.assert(
      fc.property(fc.dictionary(hostileKey, json), (value) => {
        const stored = storable(value);
        expect(Object.keys(stored)).toHaveLength(Object.keys(value).length);
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(storable(reversed))).toBe(canonicalJson(stored));
      }),
    );
  });

  test("copies nothing where nothing has to change", () => {
    const fine = { text: "é \ud83d\ude00", list: [1, { deep: null }], "\ud83d\ude00": true };
    expect(storable(fine)).toBe(fine);
    expect(storable(fine.list)).toBe(fine.list);
  });

  test("changes nothing a second time", () => {
    fc.assert(
      fc.property(json, (value) => {
        const once = storable(value);
        expect(storable(once)).toEqual(once);
      }),
    );
  });
});
