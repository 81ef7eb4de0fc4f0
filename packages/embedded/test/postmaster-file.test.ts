import { describe, expect, test } from "vitest";
import { parsePostmaster } from "../src/postmaster-file.ts";

const file = (...lines: string[]) => `${lines.join("\n")}\n`;

describe("parsePostmaster", () => {
  test("reads pid, port and readiness", () => {
    const lines = ["812", "/data", "1790000000", "5433", "", "127.0.0.1", "  1234  5678"];
    expect(parsePostmaster(file(...lines, "ready   "))).toEqual({ pid: 812, port: 5433, ready: true });
    expect(parsePostmaster(file(...lines, "starting"))).toEqual({ pid: 812, port: 5433, ready: false });
    expect(parsePostmaster(file(...lines))).toEqual({ pid: 812, port: 5433, ready: false });
  });

  test("takes an absent or incomplete file as no server", () => {
    expect(parsePostmaster("")).toBeNull();
    expect(parsePostmaster("812\n/data\n")).toBeNull();
    expect(parsePostmaster(file("-812", "/data", "1790000000", "5433"))).toBeNull();
  });
});
