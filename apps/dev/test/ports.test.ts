import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { chooseApiPort } from "../src/ports.ts";

describe("chooseApiPort", () => {
  test("takes what was asked for", async () => {
    expect(await chooseApiPort("4099")).toBe(4099);
    expect(await chooseApiPort("0")).toBe(0);
  });

  test.each(["http", "70000", "-1"])("refuses %s", async (asked) => {
    await expect(chooseApiPort(asked)).rejects.toThrow("HOLDPOINT_API_PORT");
  });

  test("picks any free port where the usual one is taken", async () => {
    const taken = createServer().listen(4080, "127.0.0.1");
    try {
      // Somebody else may have it already: taken all the same.
      await Promise.race([once(taken, "listening"), once(taken, "error")]);
      expect(await chooseApiPort(undefined)).toBe(0);
    } finally {
      taken.close();
    }
  });
});
