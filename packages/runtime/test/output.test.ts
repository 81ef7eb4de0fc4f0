import { createHash } from "node:crypto";
import { NOT_KEPT, OUTPUT_LIMIT_BYTES, SHOWN_BYTES } from "@holdpoint/store";
import { describe, expect, test } from "vitest";
import { ARTIFACT_LIMIT_BYTES, failureOutput, storeOutput, withoutWhole } from "../src/output.ts";

/** The note behind what is shown: a quarter of a kilobyte at most. */
const NOTE_BYTES = 256;

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe("storeOutput", () => {
  test("keeps what fits as it is", () => {
    const output = { total: "120.00" };
    expect(storeOutput(output)).toEqual({ output, artifacts: [], whole: {}, withoutArtifacts: output });
    expect(storeOutput("x".repeat(OUTPUT_LIMIT_BYTES)).artifacts).toEqual([]);
  });

  test("stores nothing as null, and text that Postgres can hold", () => {
    expect(storeOutput(undefined).output).toBeNull();
    expect(storeOutput({ note: "a\u0000b" })).toMatchObject({ output: { note: "a\ufffdb" } });
  });

  test("counts bytes, not characters, in what is kept and in what is shown", () => {
    for (const character of ["é", "語", "😀", "\u0001"]) {
      const { output, artifacts } = storeOutput(character.repeat(OUTPUT_LIMIT_BYTES));
      expect(artifacts).toHaveLength(character === "\u0001" ? 0 : 1);
      const bytes = Buffer.byteLength(String(output));
      expect(bytes).toBeLessThanOrEqual(character === "\u0001" ? OUTPUT_LIMIT_BYTES : SHOWN_BYTES + NOTE_BYTES);
    }
  });

  test("keeps up to 8 MB whole beside the history, and shows their beginning", () => {
    const text = "0123456789abcdef".repeat(ARTIFACT_LIMIT_BYTES / 16);
    const stored = storeOutput(text);
    const { output, artifacts, withoutArtifacts } = stored;
    const [artifact] = artifacts;
    expect(stored.whole).toEqual({ artifact: artifact?.sha256 });
    expect(withoutWhole(stored)).toEqual({ artifact: NOT_KEPT });
    expect(artifact).toMatchObject({ sizeBytes: ARTIFACT_LIMIT_BYTES, mediaType: "text/plain" });
    expect(artifact?.sha256).toBe(sha256(text));
    expect(artifact?.content).toBe(text);
    const shown = `${text.slice(0, SHOWN_BYTES)}\n[Cut: this is the beginning of 8388608 bytes; `;
    expect(output).toBe(`${shown}the whole is artifact ${artifact?.sha256}.]`);
    expect(withoutArtifacts).toBe(`${shown}the rest was not kept.]`);
  });

  test("keeps the beginning of what is larger, and says how much there was", () => {
    const { output, artifacts, whole } = storeOutput({
      items: `${"x".repeat(ARTIFACT_LIMIT_BYTES - 12)}${"😀".repeat(2 ** 20)}`,
    });
    expect(whole).toEqual({ artifact: NOT_KEPT });
    const [artifact] = artifacts;
    if (artifact === undefined) throw new Error("there is no artifact");
    const sizeBytes = ARTIFACT_LIMIT_BYTES + 4 * 2 ** 20;
    const note = `\n[Cut: the first 8388608 bytes of ${sizeBytes} bytes; the rest was not kept.]`;
    // Two bytes are left before the limit: no part of a character is kept.
    expect(artifact.content.endsWith(`xxx${note}`)).toBe(true);
    expect(artifact.content.isWellFormed()).toBe(true);
    expect(artifact.sizeBytes).toBe(Buffer.byteLength(artifact.content));
    expect(artifact.sizeBytes).toBeLessThanOrEqual(ARTIFACT_LIMIT_BYTES + note.length);
    expect(artifact.mediaType).toBe("text/plain");
    expect(artifact.sha256).toBe(sha256(artifact.content));
    expect(output).toContain(
      `of ${sizeBytes} bytes; the first 8388608 bytes are artifact ${artifact.sha256}, the rest was`,
    );
  });

  test("bounds 24 MB on a single line, and keeps what it is about", { timeout: 60_000 }, () => {
    const item = { id: "re_1", amount: "30.00", note: "a receipt" };
    const items = Array.from({ length: (24 * 2 ** 20) / 48 }, () => item);
    const { output, artifacts } = storeOutput({ a_status: "refunded", items });
    expect(String(output).startsWith('{"a_status":"refunded","items":[{"amount":"30.00"')).toBe(true);
    expect(Buffer.byteLength(String(output))).toBeLessThanOrEqual(SHOWN_BYTES + NOTE_BYTES);
    expect(artifacts).toHaveLength(1);
    expect(artifacts[0]?.sizeBytes).toBeLessThanOrEqual(ARTIFACT_LIMIT_BYTES + NOTE_BYTES);
    expect(output).toMatch(/of (more than )?\d+ bytes; the first 8388608 bytes are artifact [0-9a-f]{64}, the rest/);
  });

  test("does not pretend to know how large it is what it has not read to its end", { timeout: 60_000 }, () => {
    const { output, artifacts } = storeOutput(Array.from({ length: 1_500_000 }, () => 1));
    expect(output).toMatch(/of more than \d+ bytes; the first \d{7} bytes are artifact [0-9a-f]{64}, the rest was not/);
    expect(artifacts[0]?.content.slice(-150)).toContain("the rest: there was too much");
  });

  test("shows of binary data its size, and keeps it whole as an artifact", () => {
    const pdf = Buffer.alloc(100_000, 7);
    const { output, artifacts } = storeOutput({ id: "re_1", pdf });
    expect(output).toContain('{"id":"re_1","pdf":"[100000 bytes of binary data]"}');
    expect(artifacts[0]?.content).toBe(`{"id":"re_1","pdf":{"$bytes":"${pdf.toString("base64")}"}}`);
    expect(artifacts[0]?.mediaType).toBe("application/json");
  });

  test("stores an outcome whatever the tool gives", () => {
    const circle: Record<string, unknown> = { id: "re_1" };
    circle.self = circle;
    expect(storeOutput(circle).output).toMatchObject({
      id: "re_1",
      self: { $not_stored: expect.stringContaining("cycle") },
    });
    expect(storeOutput({ big: 2n }).output).toEqual({ big: { $bigint: "2" } });
    expect(storeOutput(() => 1).output).toEqual({ $not_stored: "a function" });
  });

  test("cuts JSON as text, and never through a character", () => {
    for (const before of [23_985, 23_986, 23_987, 23_988]) {
      const { output, artifacts } = storeOutput({ items: `${"x".repeat(before)}${"😀".repeat(5_000)}` });
      expect(artifacts[0]?.mediaType).toBe("application/json");
      expect(String(output).isWellFormed()).toBe(true);
      expect(String(output).startsWith('{"items":"xxx')).toBe(true);
    }
  });
});

describe("failureOutput", () => {
  test("bounds what another system says of a failure, and makes it storable", () => {
    expect(failureOutput({ code: "declined", message: "No\u0000" })).toEqual({
      result: "failed",
      code: "declined",
      message: "No\ufffd",
    });
    const long = failureOutput({ code: "c".repeat(5_000), message: "😀".repeat(2_000_000) });
    expect(Buffer.byteLength(JSON.stringify(long))).toBeLessThan(5_000);
  });
});
