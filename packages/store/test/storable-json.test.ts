import { storable } from "@holdpoint/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { storableJson } from "../src/storable-json.ts";

test.each([
  ["plain text", { a: ["b", 1, null, true] }],
  ["an escape that is only written out", { a: "\\u0000 and \\ud800" }],
  ["NUL", { a: "x\u0000y" }],
  ["NUL in a key", { "x\u0000y": 1 }],
  ["a lone high surrogate", { a: "\ud83d!" }],
  ["a lone low surrogate, deep", { a: [{ b: "\ude00" }] }],
  ["a pair", { a: "\ud83d\ude00" }],
  ["other control characters", { a: "\u0001\u001f\n" }],
])("writes %s as core makes it storable", (_, input) => {
  expect(JSON.parse(storableJson(input))).toEqual(storable(input));
});

test("writes any data as core makes it storable", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      const input = { value } as never;
      expect(JSON.parse(storableJson(input))).toEqual(JSON.parse(JSON.stringify(storable(input))));
    }),
  );
});
