import { describe, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";

const VALID = {
  HOLDPOINT_DATABASE_URL: "postgres://localhost/holdpoint",
  HOLDPOINT_API_TOKENS: "alice-token=alice:requester",
};

function mistakes(settings: Record<string, string>): string {
  try {
    readConfig({ ...VALID, ...settings });
  } catch (error) {
    if (error instanceof Error) return error.message;
    throw error;
  }
  throw new Error("the configuration was taken");
}

describe("readConfig", () => {
  test("needs a database and tokens, and has a default for the rest", () => {
    expect(readConfig(VALID)).toEqual({
      databaseUrl: "postgres://localhost/holdpoint",
      queue: { kind: "postgres", url: "postgres://localhost/holdpoint" },
      host: "127.0.0.1",
      port: 4080,
      tokens: [{ token: "alice-token", user: "alice", roles: ["requester"] }],
      callbackSecrets: [],
      pooled: false,
      logLevel: "info",
    });
  });

  test("takes an empty value for an absent one", () => {
    expect(readConfig({ ...VALID, HOLDPOINT_REDIS_URL: "", HOLDPOINT_API_PORT: "" })).toMatchObject({
      queue: { kind: "postgres" },
      port: 4080,
    });
    expect(mistakes({ HOLDPOINT_DATABASE_URL: "" })).toContain("HOLDPOINT_DATABASE_URL is missing");
  });

  test("publishes where the workers listen", () => {
    const at = (settings: Record<string, string>) => readConfig({ ...VALID, ...settings }).queue;
    expect(at({ HOLDPOINT_REDIS_URL: "redis://cache:6379" })).toEqual({ kind: "redis", url: "redis://cache:6379" });
    const apart = "postgres://localhost/queue";
    expect(at({ HOLDPOINT_QUEUE_DATABASE_URL: apart })).toEqual({ kind: "postgres", url: apart });
    expect(mistakes({ HOLDPOINT_POOLED: "1" })).toContain("HOLDPOINT_QUEUE_DATABASE_URL is needed");
  });

  test.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("listens on %s", (host) => {
    expect(readConfig({ ...VALID, HOLDPOINT_API_HOST: host })).toMatchObject({ host });
  });

  test.each(["0.0.0.0", "::", "10.0.0.1", "127.example.com", "example.com"])("refuses to listen on %s", (host) => {
    expect(mistakes({ HOLDPOINT_API_HOST: host })).toContain("HOLDPOINT_API_HOST must be a loopback address");
  });

  test("reads several tokens with several roles", () => {
    const tokens = "olga-token=olga:operator, manager; mona-token=mona@example.com:manager;";
    expect(readConfig({ ...VALID, HOLDPOINT_API_TOKENS: tokens }).tokens).toEqual([
      { token: "olga-token", user: "olga", roles: ["operator", "manager"] },
      { token: "mona-token", user: "mona@example.com", roles: ["manager"] },
    ]);
  });

  test.each([
    [";", "names nobody"],
    ["alice-token", "entry 1: must look like token=user:role,role"],
    ["alice-token=alice", "entry 1: must look like"],
    ["short=alice:requester", "entry 1: its token needs at least 8 characters"],
    ["alice-token=al ice:requester", "entry 1: its user must be"],
    ["alice-token=alice:Requester", "entry 1: its roles must be"],
    ["alice-token=alice:requester;alice-token=bob:requester", "has the same token twice"],
  ])("refuses the tokens %j", (tokens, mistake) => {
    const message = mistakes({ HOLDPOINT_API_TOKENS: tokens });
    expect(message).toContain(`HOLDPOINT_API_TOKENS ${mistake}`);
    expect(message).not.toMatch(/alice-token|short=/);
  });

  test("reads secrets for reports, two for a source that changes them", () => {
    const secrets = "bank=s3cret=with=equals; post=another-secret-1;bank=a-newer-secret-2;";
    expect(readConfig({ ...VALID, HOLDPOINT_CALLBACK_SECRETS: secrets }).callbackSecrets).toEqual([
      { source: "bank", secret: "s3cret=with=equals" },
      { source: "post", secret: "another-secret-1" },
      { source: "bank", secret: "a-newer-secret-2" },
    ]);
  });

  test.each([
    ["bank", "entry 1: must look like source=secret"],
    ["bank=too-short-sec", "entry 1: its secret needs at least 16 characters"],
    ["post=long-enough-secret;Bank=long-enough-secret", "entry 2: its source must be"],
    ["bank=has spaces in the secret", "entry 1: its secret must be visible"],
    ["b=long-enough-secret;b=long-enough-secre2;b=long-enough-secre3", "has more than 2 secrets for b"],
  ])("refuses the secrets %j, and does not tell them", (secrets, mistake) => {
    const message = mistakes({ HOLDPOINT_CALLBACK_SECRETS: secrets });
    expect(message).toContain(`HOLDPOINT_CALLBACK_SECRETS ${mistake}`);
    expect(message).not.toMatch(/too-short-sec|long-enough|has spaces in/);
  });
});
