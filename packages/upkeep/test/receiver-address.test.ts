import { describe, expect, test } from "vitest";
import { guardedLookup, namesRefusedAddress } from "../src/deliveries/receiver-address.ts";

describe("an address that a URL names", () => {
  test.each([
    "https://169.254.169.254/",
    "https://0xa9fea9fe/",
    "https://[fe80::1]/",
    "https://[fd00:ec2::254]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://100.100.100.200/",
    "https://0.0.0.0/",
    "https://127.0.0.2/",
    "https://255.255.255.255/",
    "https://[ff02::1]/",
  ])("%s is refused", (url) => {
    expect(namesRefusedAddress(new URL(url))).toBe(true);
  });

  test.each([
    "https://10.0.0.7/",
    "https://203.0.113.9/",
    "https://[2001:db8::1]/",
    "http://127.0.0.1:80/",
    "http://[::1]/",
  ])("%s is not", (url) => {
    expect(namesRefusedAddress(new URL(url))).toBe(false);
  });
});

describe("a name that is looked up", () => {
  const look = (url: string, hostname: string, all: boolean) =>
    new Promise<{ readonly code: string | null; readonly found: unknown }>((resolve) => {
      guardedLookup(new URL(url))(hostname, { all }, (error, found) => resolve({ code: error?.code ?? null, found }));
    });

  test("of another host is not this machine, whatever it resolves to", async () => {
    expect(await look("https://example.com/", "localhost", true)).toMatchObject({ code: "ADDRESS_REFUSED" });
  });

  test("of localhost is this machine, as one address or as all", async () => {
    expect(await look("http://localhost/", "localhost", false)).toEqual({
      code: null,
      found: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
    });
    const { found } = await look("http://localhost/", "localhost", true);
    expect(found).toContainEqual(expect.objectContaining({ address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/) }));
  });
});
