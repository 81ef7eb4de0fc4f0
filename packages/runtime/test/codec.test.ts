import { canonicalJson, type JsonValue, storable } from "@holdpoint/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutText, decode, encode, type Storable, toPlain } from "../src/codec.ts";

/** What comes back of a value after it was stored as JSON text. */
function reloaded(value: unknown): Storable {
  return decode(JSON.parse(JSON.stringify(encode(value).json)) as JsonValue);
}

function note(what: string): JsonValue {
  return { $not_stored: what };
}

class Money {
  readonly cents = 3_000;
  get euros(): number {
    return this.cents / 100;
  }
}

describe("encode and decode", () => {
  test.each<readonly [string, unknown, JsonValue, Storable]>([
    ["a Date", new Date(1_792_567_680_000), { $date: "2026-10-21T07:28:00.000Z" }, new Date(1_792_567_680_000)],
    ["a Date of a far year", new Date(8.64e15), { $date: "+275760-09-13T00:00:00.000Z" }, new Date(8.64e15)],
    ["a bigint", 9_007_199_254_740_993n, { $bigint: "9007199254740993" }, 9_007_199_254_740_993n],
    ["a negative bigint", -(2n ** 64n), { $bigint: "-18446744073709551616" }, -(2n ** 64n)],
    ["bytes", new Uint8Array([0, 255, 128]), { $bytes: "AP+A" }, new Uint8Array([0, 255, 128])],
    ["a Buffer", Buffer.from("hi"), { $bytes: "aGk=" }, new Uint8Array([104, 105])],
    ["a part of a buffer", Buffer.from("xhix").subarray(1, 3), { $bytes: "aGk=" }, new Uint8Array([104, 105])],
    ["an ArrayBuffer", new Uint8Array([104, 105]).buffer, { $bytes: "aGk=" }, new Uint8Array([104, 105])],
    ["no bytes", new Uint8Array(0), { $bytes: "" }, new Uint8Array(0)],
    ["undefined in an object", { a: undefined, b: 1 }, { b: 1 }, { b: 1 }],
    ["undefined in a list", [undefined, 1], [null, 1], [null, 1]],
    ["undefined alone", undefined, null, null],
    ["minus zero", -0, 0, 0],
    ["an instance of a class", new Money(), { cents: 3_000 }, { cents: 3_000 }],
    ["what has toJSON", new URL("https://shop.test/a"), "https://shop.test/a", "https://shop.test/a"],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }, { a: 1 }],
  ])("keeps %s", (_what, given, stored, back) => {
    expect(encode(given)).toStrictEqual({ json: stored, isReplaced: false, isCut: false, isLossy: false });
    expect(reloaded(given)).toStrictEqual(back);
  });

  test.each<readonly [string, unknown, string]>([
    ["NaN", Number.NaN, "NaN"],
    ["Infinity", Number.NEGATIVE_INFINITY, "-Infinity"],
    ["a function", () => 1, "a function"],
    ["a symbol", Symbol("s"), "a symbol"],
    ["an invalid Date", new Date(Number.NaN), "an invalid Date"],
    ["a Map", new Map([["a", 1]]), "a Map of 1 entries"],
    ["a Set", new Set([1, 2]), "a Set of 2 values"],
    ["an Error", new TypeError("boom"), "TypeError: boom"],
    ["a Promise", Promise.resolve(1), "a Promise: it was not awaited"],
    ["floats", new Float64Array(2), "16 bytes of a kind that cannot come back"],
    ["a RegExp", /x/, "an object of class RegExp without properties of its own"],
    ["a bigint without end", 2n ** 20_000n, "a bigint of too many digits"],
  ])("says what %s was, and stores the rest", (_what, given, said) => {
    expect(encode({ id: "re_1", given })).toMatchObject({ json: { id: "re_1", given: note(said) }, isLossy: true });
    expect(reloaded({ given })).toEqual({ given: note(said) });
  });

  test("says where an object is inside itself, and writes one that is there twice both times", () => {
    const circle: Record<string, unknown> = { id: "re_1" };
    circle.self = [circle];
    expect(encode(circle).json).toEqual({ id: "re_1", self: [note("a cycle: the object is inside itself")] });
    const shared = { a: 1 };
    expect(encode([shared, shared]).json).toEqual([{ a: 1 }, { a: 1 }]);
  });

  test("goes on behind what throws when it is read", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const hostile = {
      proxy,
      toJson: { toJSON: () => fail() },
      get broken() {
        return fail();
      },
      id: "re_1",
    };
    expect(encode(hostile).json).toEqual({
      proxy: note("an object that could not be read"),
      toJson: note("an object that could not be read"),
      broken: note("a property that could not be read"),
      id: "re_1",
    });
  });

  test("ends where a value has no end: depth, toJSON, lists, shared parts", () => {
    let deep: unknown = "bottom";
    for (let level = 0; level < 50_000; level += 1) deep = { deep };
    expect(JSON.stringify(encode(deep).json)).toContain("what is deeper than 100 levels");
    const endless = { toJSON: () => ({ ...endless }) };
    expect(JSON.stringify(encode(endless).json)).toContain("what is deeper than 100 levels");
    expect(encode(new Array(2 ** 32 - 1), 1_000)).toMatchObject({ isCut: true, json: { length: 63 } });
    let shared: unknown = "x".repeat(1_000);
    for (let level = 0; level < 60; level += 1) shared = [shared, shared];
    const { json, isCut } = encode(shared, 100_000);
    expect(isCut).toBe(true);
    expect(canonicalJson(json).length).toBeLessThan(200_000);
    expect(encode({ bytes: new Uint8Array(1_000), id: "re_1" }, 1_000)).toMatchObject({
      json: { bytes: note("1000 bytes of binary data: there was too much"), id: "re_1" },
      isCut: true,
    });
  });

  test("cuts text without end at a character, and says where an object goes on", () => {
    const { json, isCut, isReplaced } = encode(`x${"😀".repeat(1_000)}`, 1_000);
    expect({ isCut, isReplaced }).toEqual({ isCut: true, isReplaced: false });
    expect(json).toBe(`x${"😀".repeat(491)}`);
    expect(encode({ a: "x".repeat(100), b: 1 }, 64).json).toEqual({
      a: "x".repeat(31),
      $not_stored: "the rest: there was too much",
    });
  });

  test("says that text was replaced, in values and keys", () => {
    expect(encode({ status: "ok", note: "caf\u0000e", id: "re_1" })).toMatchObject({
      json: { status: "ok", note: "caf\ufffde", id: "re_1" },
      isReplaced: true,
    });
    expect(encode({ "half \ud83d": 1 })).toMatchObject({ json: { "half \ufffd": 1 }, isReplaced: true });
    expect(encode(new Error("a\u0000\ud800")).json).toEqual(note("Error: a\ufffd\ufffd"));
  });

  test.each<readonly [unknown, JsonValue]>([
    [{ $date: "2026-10-21T07:28:00.000Z" }, { $$date: "2026-10-21T07:28:00.000Z" }],
    [{ $$bigint: 1 }, { $$$bigint: 1 }],
    [{ $bytes: new Date(0) }, { $$bytes: { $date: "1970-01-01T00:00:00.000Z" } }],
    [{ $not_stored: undefined, $bytes: "aGk=" }, { $$bytes: "aGk=" }],
    [
      { $date: "2026-10-21T07:28:00.000Z", b: 1 },
      { $date: "2026-10-21T07:28:00.000Z", b: 1 },
    ],
    [{ $dates: "x" }, { $dates: "x" }],
  ])("keeps an object that looks like a tag: %j", (given, stored) => {
    expect(encode(given).json).toEqual(stored);
    expect(reloaded(given)).toEqual(given);
  });

  test.each<JsonValue>([
    { $date: "yesterday" },
    { $date: "2026-13-45T07:28:00.000Z" },
    { $bigint: "1e3" },
    { $bigint: 5 },
    { $bytes: "not base64!" },
    { $not_stored: "a Map of 1 entries" },
    { $date: { $bigint: "x" } },
  ])("leaves alone what stands for nothing: %j", (stored) => {
    expect(decode(stored)).toEqual(stored);
  });

  test("gives back all data that a tool may give, also under keys that look like tags", () => {
    const scalar = fc.oneof(
      fc.string({ unit: "binary" }).map(storable),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
      fc.boolean(),
      fc.constant(null),
      fc.bigInt(),
      fc.date({ noInvalidDate: true }),
      fc.uint8Array(),
    );
    const key = fc.oneof(
      fc.string(),
      fc.constantFrom("$date", "$$date", "$bigint", "$bytes", "$not_stored", "$$$not_stored", "__proto__"),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ depthSize: "small" }, scalar, fc.array(tie("value")), fc.dictionary(key, tie("value"))),
    }));
    fc.assert(
      fc.property(value, (given) => {
        const encoded = encode(given);
        expect(encoded).toMatchObject({ isReplaced: false, isCut: false, isLossy: false });
        expect(decode(JSON.parse(canonicalJson(encoded.json)) as JsonValue)).toEqual(given);
      }),
    );
  });

  test("takes whatever there is, and gives what can be stored", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withTypedArray: true,
          withSparseArray: true,
        }),
        (given) => {
          const { json } = encode(given);
          expect(storable(json)).toEqual(json);
          expect(decode(encode(decode(json)).json)).toEqual(decode(json));
        },
      ),
    );
  });
});

describe("toPlain", () => {
  test("shows a model dates and bigints as text, and of binary data its size", () => {
    const stored = encode({
      at: new Date(0),
      amount: 9_007_199_254_740_993n,
      pdf: new Uint8Array(70_000),
      seen: new Set([1]),
      list: [{ $date: "soon" }],
    }).json;
    expect(toPlain(stored)).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      amount: "9007199254740993",
      pdf: "[70000 bytes of binary data]",
      seen: "[not stored: a Set of 1 values]",
      list: [{ $date: "soon" }],
    });
    expect(toPlain({ $date: "yesterday" })).toEqual({ $date: "yesterday" });
  });
});

describe("cutText", () => {
  test.each([
    ["abc", 3, "abc"],
    ["abc", 2, "ab"],
    ["a😀b", 2, "a"],
    ["a😀b", 3, "a😀"],
    ["😀", 1, ""],
    ["😀", 0, ""],
    ["\ud83dx", 1, "\ud83d"],
  ])("cuts %j at %i", (text, length, cut) => {
    expect(cutText(text, length)).toBe(cut);
  });
});

function fail(): never {
  throw new Error("no");
}
