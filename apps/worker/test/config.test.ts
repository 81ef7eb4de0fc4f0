import { describe, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";

const VALID = { HOLDPOINT_DATABASE_URL: "postgresql://user@host/db" };

describe("where the metrics are shown", () => {
  test("is nowhere without a port, also if a host is named", () => {
    expect(readConfig(VALID).metrics).toBeNull();
    expect(readConfig({ ...VALID, HOLDPOINT_METRICS_HOST: "0.0.0.0", HOLDPOINT_METRICS_PORT: "" }).metrics).toBeNull();
  });

  test("is this machine only, unless a host is named", () => {
    expect(readConfig({ ...VALID, HOLDPOINT_METRICS_PORT: "9464" }).metrics).toEqual({ host: "127.0.0.1", port: 9464 });
    const open = { HOLDPOINT_METRICS_PORT: "0", HOLDPOINT_METRICS_HOST: "0.0.0.0" };
    expect(readConfig({ ...VALID, ...open }).metrics).toEqual({ host: "0.0.0.0", port: 0 });
  });

  test.each(["65536", "-1", "9464a", "94.64"])("refuses %s as a port", (port) => {
    expect(() => readConfig({ ...VALID, HOLDPOINT_METRICS_PORT: port })).toThrow(
      "HOLDPOINT_METRICS_PORT must be a port, 0 to 65535",
    );
  });
});
