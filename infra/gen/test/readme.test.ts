import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

test.each(["test/e2e/first-agent.ts", "test/e2e/first-workflow.ts"])(
  "what the README shows of %s is what the tests run",
  (path) => {
    const [, shown] = new RegExp(`<!-- ${path} -->\\n\`\`\`ts\\n([\\s\\S]*?)\`\`\``).exec(read("README.md")) ?? [];
    expect(shown).toBe(read(path));
  },
);

test("every document that a document points at is there", () => {
  for (const from of ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]) {
    const links = [...read(from).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => path ?? "");
    for (const path of links) expect(read(path), `${from} → ${path}`).not.toBe("");
  }
});

test("every test file that ARCHITECTURE names is there", () => {
  const named = [
    ...read("ARCHITECTURE.md").matchAll(/`(?:(core|store|runtime)\/)(test\/[\w.-]+\.ts|src\/[\w.-]+\.ts)`/g),
  ];
  expect(named.length).toBeGreaterThan(10);
  for (const [, room, path] of named) expect(read(`packages/${room}/${path}`)).not.toBe("");
});
