import { describe, expect, test } from "vitest";
import { readDeskConfig } from "../src/desk-config.ts";
import { readSetupConfig } from "../src/setup-config.ts";

const DATABASE = { REFUND_DESK_DATABASE_URL: "postgres://desk@127.0.0.1:5432/orders" };
const SANDBOX = { REFUND_DESK_STRIPE_URL: "http://127.0.0.1:4010" };

describe("readDeskConfig", () => {
  test("takes the sandbox without a key, and the clerk without a name", () => {
    expect(
      readDeskConfig({ ...DATABASE, ...SANDBOX, REFUND_DESK_MODEL: "", REFUND_DESK_STRIPE_KEY: "" }),
    ).toMatchObject({
      databaseUrl: DATABASE.REFUND_DESK_DATABASE_URL,
      payments: { url: new URL(SANDBOX.REFUND_DESK_STRIPE_URL), key: "sk_test_sandbox" },
      model: { modelId: "clerk-1" },
    });
  });

  test("takes Stripe itself with a test key, and a provider's model with its key", () => {
    const config = readDeskConfig({
      ...DATABASE,
      REFUND_DESK_STRIPE_KEY: "sk_test_abc",
      REFUND_DESK_MODEL: "compatible/small",
      HOLDPOINT_MODEL_BASE_URL: "http://127.0.0.1:8080/v1",
    });
    expect(config).toMatchObject({ payments: { url: null, key: "sk_test_abc" }, model: { modelId: "small" } });
  });

  test("names all mistakes together and shows no value", () => {
    const read = () =>
      readDeskConfig({
        REFUND_DESK_DATABASE_URL: "mysql://user:hunter2@host/db",
        REFUND_DESK_STRIPE_URL: "ftp://nowhere",
        REFUND_DESK_STRIPE_KEY: "sk_live_secret",
        REFUND_DESK_MODEL: "anthropic/claude",
      });
    expect(read).toThrow(/Postgres database.*http or https.*live key.*ANTHROPIC_API_KEY/s);
    expect(read).not.toThrow(/hunter2|secret/);
  });

  test.each([
    [{ ...DATABASE }, /REFUND_DESK_STRIPE_KEY/],
    [{ ...SANDBOX }, /REFUND_DESK_DATABASE_URL/],
    [{ ...DATABASE, REFUND_DESK_STRIPE_URL: "http://127.0.0.1:1/v1" }, /no path/],
    [{ ...DATABASE, REFUND_DESK_STRIPE_KEY: "pk_test_1" }, /must be a Stripe test key/],
    [{ ...DATABASE, ...SANDBOX, REFUND_DESK_MODEL: "gpt" }, /provider\/model|provider must be.*clerk/s],
  ])("refuses %o", (env, message) => {
    expect(() => readDeskConfig(env)).toThrow(message);
  });
});

describe("readSetupConfig", () => {
  test("needs no key, and may go without the sandbox", () => {
    const databaseUrl = DATABASE.REFUND_DESK_DATABASE_URL;
    expect(readSetupConfig(DATABASE)).toEqual({ databaseUrl, sandboxUrl: null });
    expect(readSetupConfig({ ...DATABASE, ...SANDBOX })).toEqual({
      databaseUrl,
      sandboxUrl: SANDBOX.REFUND_DESK_STRIPE_URL,
    });
  });

  test("names both mistakes", () => {
    expect(() => readSetupConfig({ REFUND_DESK_STRIPE_URL: "127.0.0.1" })).toThrow(/Postgres.*http/s);
  });
});
