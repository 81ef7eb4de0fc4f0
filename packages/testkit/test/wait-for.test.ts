import { describe, expect, test } from "vitest";
import { waitFor } from "../src/index.ts";

describe("waitFor", () => {
  test("asks until there is an answer, and returns it", async () => {
    const answers = [false, null, undefined, 0];
    let asked = 0;
    const condition = () => {
      asked += 1;
      return answers.shift();
    };
    expect(await waitFor(condition, { deadlineMs: 5_000, what: "a number" })).toBe(0);
    expect(asked).toBe(4);
  });

  test("names what it waited for when the deadline passes", async () => {
    const wait = waitFor(async () => null, { deadlineMs: 20, what: "the run to be lost" });
    await expect(wait).rejects.toThrow("waited 20 ms in vain for the run to be lost; the last answer was null");
  });

  test("passes an error of the condition on at once", async () => {
    const broken = () => Promise.reject(new Error("no connection"));
    await expect(waitFor(broken, { deadlineMs: 60_000, what: "anything" })).rejects.toThrow("no connection");
  });
});
