import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { openSignatures } from "../src/callback-signature.ts";

const OLD = "the-old-secret-of-bank";
const NEW = "the-new-secret-of-bank";
const isSigned = openSignatures([
  { source: "bank", secret: OLD },
  { source: "bank", secret: NEW },
  { source: "post", secret: "the-secret-of-the-post" },
]);

const NOW_S = 1_800_000_000;
const BODY = Buffer.from('{"id":"evt_1"}');

/** A signature as it is made elsewhere, written out here a second time. */
function signature(secret: string, { atS = NOW_S, body = BODY } = {}): string {
  return `t=${atS},v1=${createHmac("sha256", secret).update(`${atS}.${body.toString()}`).digest("hex")}`;
}

const judge = (header: string | undefined, { source = "bank", body = BODY } = {}) =>
  isSigned({ source, signature: header, body }, NOW_S * 1_000);

describe("openSignatures", () => {
  test("knows a signature that was made elsewhere", () => {
    // openssl dgst -sha256 -hmac the-new-secret-of-bank, over 1800000000.{"id":"evt_1"}
    const known = "7b206770c07b069e274877f5e87ae225c798d5dd26fe2d70e8a00d6866254e69";
    expect(judge(`t=1800000000,v1=${known}`)).toBe(true);
  });

  test.each([OLD, NEW])("takes either secret of a source that changes them: %s", (secret) => {
    expect(judge(signature(secret))).toBe(true);
  });

  test.each([-300, 300])("takes a time that is off by %i s, and no more", (offS) => {
    expect(judge(signature(NEW, { atS: NOW_S + offS }))).toBe(true);
    expect(judge(signature(NEW, { atS: NOW_S + offS + Math.sign(offS) }))).toBe(false);
  });

  test("refuses another body, another source, another time than was signed, and nobody's secret", () => {
    expect(judge(signature(NEW), { body: Buffer.from('{"id":"evt_2"}') })).toBe(false);
    expect(judge(signature(NEW), { source: "post" })).toBe(false);
    expect(judge(signature(NEW), { source: "nobody" })).toBe(false);
    expect(judge(signature(NEW).replace(`t=${NOW_S}`, `t=${NOW_S + 1}`))).toBe(false);
    expect(judge(signature("a-secret-that-nobody-has"))).toBe(false);
  });

  test.each([
    undefined,
    "",
    "t=1800000000",
    `v1=${"0".repeat(64)}`,
    `t=1800000000,v1=${"0".repeat(63)}`,
    `t=1800000000,v1=${"z".repeat(64)}`,
    `t=-1,v1=${"0".repeat(64)}`,
    `t=1e9,v1=${"0".repeat(64)}`,
    `${signature(NEW)},v1=${"0".repeat(64)}`,
  ])("refuses the header %j", (header) => {
    expect(judge(header)).toBe(false);
  });

  test("without any secret takes nothing", () => {
    const none = openSignatures([]);
    expect(none({ source: "bank", signature: signature(NEW), body: BODY }, NOW_S * 1_000)).toBe(false);
  });
});
