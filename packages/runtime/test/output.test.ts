import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { OUTPUT_LIMIT_BYTES, storeOutput } from "../src/output.ts";

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

  test("keeps 24 MB whole beside the history, and shows their beginning", () => {
    const text = "0123456789abcdef".repeat((24 * 2 ** 20) / 16);
    const { output, artifacts } = storeOutput(text);
    const [artifact] = artifacts;
    expect(artifact).toMatchObject({ sizeBytes: 24 * 2 ** 20, mediaType: "text/plain" });
    expect(artifact?.sha256).toBe(createHash("sha256").update(text).digest("hex"));
    expect(artifact?.content.length).toBe(text.length);
    expect(Buffer.byteLength(String(output))).toBeLessThan(OUTPUT_LIMIT_BYTES);
    expect(output).toContain(`the whole is artifact ${artifact?.sha256}`);
    expect(output).toContain("of 25165824 bytes");
  });

  test("cuts JSON as text, and never through a character", () => {
    const { output, artifacts } = storeOutput({ items: `${"x".repeat(23_989)}${"😀".repeat(5_000)}` });
    expect(artifacts[0]?.mediaType).toBe("application/json");
    expect(String(output).isWellFormed()).toBe(true);
    expect(String(output).startsWith('{"items":"xxx')).toBe(true);
  });
});
