import pg from "pg";
import { expect, test } from "vitest";
import { failureKind } from "../src/index.ts";

function fromServer(code: string): Error {
  const error = new pg.DatabaseError("refused", 0, "error");
  error.code = code;
  return error;
}

test.each([
  ["22P05", "data"],
  ["23505", "data"],
  ["40P01", "repeat"],
  ["40001", "repeat"],
  ["55P03", "repeat"],
  ["57P01", "connection"],
  ["57014", "connection"],
  ["08006", "connection"],
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
