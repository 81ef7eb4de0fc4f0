import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { NoticePolicy, ROUTES } from "../src/index.ts";

test("the policy of a webhook that names none is the one that the docs say, and they say each", async () => {
  const docs = await readFile(new URL("../../../apps/docs/webhooks.md", import.meta.url), "utf8");
  const { policy } = ROUTES.addWebhook.body.parse({ name: "billing", url: "https://example.com" });
  expect(docs).toContain(`| \`${policy}\` (default)`);
  for (const each of NoticePolicy.options) expect(docs).toContain(`| \`${each}\``);
  expect(docs.split("(default)")).toHaveLength(2);
});
