import { createHash } from "node:crypto";
import type { JsonValue } from "@holdpoint/core";
import { describe, expect, test } from "vitest";
import { ARTIFACT_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, storeOutput } from "../src/output.ts";

describe("storeOutput", () => {
  test("keeps what fits as it is", () => {
    expect(storeOutput({ total: "120.00" })).toEqual({ output: { total: "120.00" }, artifacts: [] });
    expect(storeOutput("x".repeat(OUTPUT_LIMIT_BYTES)).artifacts).toEqual([]);
  });

  test("stores nothing as null, and text that Postgres can hold", () => {
    expect(storeOutput(undefined).output).toBeNull();
    expect(storeOutput({ note: "a\u0000b" }).output).toEqual({ note: "a\ufffdb" });
  });

  test("counts bytes, not characters", () => {
    expect(storeOutput("é".repeat(OUTPUT_LIMIT_BYTES / 2 + 1)).artifacts).toHaveLength(1);
  });

  test("keeps up to 8 MB whole beside the history, and shows their beginning", () => {
    const text = "0123456789abcdef".repeat(ARTIFACT_LIMIT_BYTES / 16);
    const { output, artifacts } = storeOutput(text);
    const [artifact] = artifacts;
    expect(artifact).toMatchObject({ sizeBytes: ARTIFACT_LIMIT_BYTES, mediaType: "text/plain" });
    expect(artifact?.sha256).toBe(createHash("sha256").update(text).digest("hex"));
    expect(artifact?.content).toBe(text);
    expect(Buffer.byteLength(String(output))).toBeLessThan(OUTPUT_LIMIT_BYTES);
    expect(output).toContain(`the whole is artifact ${artifact?.sha256}`);
    expect(output).toContain("of 8388608 bytes");
  });

  test("keeps the beginning of what is larger, and says how much there was", () => {
    const { output, artifacts } = storeOutput({
      items: `${"x".repeat(ARTIFACT_LIMIT_BYTES - 12)}${"😀".repeat(2 ** 20)}`,
    });
    const [artifact] = artifacts;
    if (artifact === undefined) throw new Error("there is no artifact");
    const sizeBytes = ARTIFACT_LIMIT_BYTES + 4 * 2 ** 20;
    const note = `\n[Cut: the first 8388608 of ${sizeBytes} bytes; the rest was not kept.]`;
    // Two bytes are left before the limit: no part of a character is kept.
    expect(artifact.content.endsWith(`xxx${note}`)).toBe(true);
    expect(artifact.content.isWellFormed()).toBe(true);
    expect(artifact.sizeBytes).toBe(Buffer.byteLength(artifact.content));
    expect(artifact.sizeBytes).toBeLessThanOrEqual(ARTIFACT_LIMIT_BYTES + note.length);
    expect(artifact.mediaType).toBe("text/plain");
    expect(artifact.sha256).toBe(createHash("sha256").update(artifact.content).digest("hex"));
    expect(output).toContain(
      `of ${sizeBytes} bytes; the first 8388608 bytes are artifact ${artifact.sha256}, the rest was`,
    );
  });

  test("notes an output that nothing can be made of, instead of failing the call that brought it", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    // Tools are other people's code: what they give is no JSON for certain.
    const given = [circle, { big: 2n }] as unknown as JsonValue[];
    for (const each of given) {
      expect(storeOutput(each)).toEqual({
        output: expect.stringMatching(/^\[The output was not kept: .*\((RangeError|TypeError)\)\.\]$/),
        artifacts: [],
      });
    }
  });

  test("cuts JSON as text, and never through a character", () => {
    const { output, artifacts } = storeOutput({ items: `${"x".repeat(23_989)}${"😀".repeat(5_000)}` });
    expect(artifacts[0]?.mediaType).toBe("application/json");
    expect(String(output).isWellFormed()).toBe(true);
    expect(String(output).startsWith('{"items":"xxx')).toBe(true);
  });
});
