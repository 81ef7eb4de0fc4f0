import pg from "pg";
import { describe, expect, test } from "vitest";
import { executeBatch } from "../src/execute.ts";
import { failureKind } from "../src/index.ts";

function fromServer(code: string): Error {
  const error = new pg.DatabaseError("refused", 0, "error");
  error.code = code;
  return error;
}

test.each([
  ["22P05", "data"],
  ["23505", "data"],
  ["54000", "data"],
  ["40P01", "repeat"],
  ["40001", "repeat"],
  ["55P03", "repeat"],
  ["57P01", "connection"],
  ["57014", "connection"],
  ["08006", "connection"],
  ["25006", "connection"],
  ["53100", "resources"],
  ["42P01", "other"],
])("what the server says with %s is met as: %s", (code, kind) => {
  expect(failureKind(fromServer(code))).toBe(kind);
});

test.each(["ECONNREFUSED", "EPIPE", "ECONNRESET"])("a socket's %s is a broken connection", (code) => {
  expect(failureKind(Object.assign(new Error("socket"), { code }))).toBe("connection");
});

test("a client's time-out without a code is a broken connection", () => {
  expect(failureKind(new Error("Query read timeout"))).toBe("connection");
});

test("a mistake of the program is nothing that passes", () => {
  expect(failureKind(new TypeError("undefined is not a function"))).toBe("other");
  expect(failureKind(new RangeError("A batch takes at most one commit per run"))).toBe("other");
});

describe("executeBatch", () => {
  /** Which items took effect, in which statements, and which failed, where a statement with item 3 fails like this. */
  async function outcome(error: Error) {
    const sent: (readonly number[])[] = [];
    const results = await executeBatch([0, 1, 2, 3, 4, 5, 6, 7], async (items) => {
      sent.push(items.map(({ item }) => item));
      if (items.some(({ item }) => item === 3)) throw error;
      return items.map(({ ord }) => ({ ord }));
    });
    const failed = results.flatMap((result, ord) => (result instanceof Error ? [ord] : []));
    return { sent, failed };
  }

  test.each([
    ["its data", fromServer("22P02")],
    ["its size", fromServer("54000")],
    ["what nobody has foreseen", fromServer("XX000")],
    ["being more than can be sent", new RangeError("Invalid string length")],
  ])("splits what is refused for %s until only the bad item fails", async (_why, error) => {
    const { sent, failed } = await outcome(error);
    expect(failed).toEqual([3]);
    expect(sent).toEqual([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3], [0, 1], [2, 3], [2], [3], [4, 5, 6, 7]]);
  });

  test.each([
    ["a connection breaks", fromServer("25006")],
    ["there is no room", fromServer("53100")],
  ])("sends nothing again when %s: that is no item's fault", async (_why, error) => {
    const { sent, failed } = await outcome(error);
    expect(failed).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(sent).toHaveLength(1);
  });
});
