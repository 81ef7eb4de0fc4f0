import { expect, test } from "vitest";
import { openStore } from "../src/index.ts";
import { useBench } from "./a-store.ts";

const bench = useBench();

test.each(["pool", "leasePool"] as const)(
  "what the server says to a connection of the %s that has no statement under way ends no process",
  async (name) => {
    await using store = openStore({ url: bench.url });
    const client = await store[name].connect();
    // An event "error" that nobody listens to is thrown.
    expect(() => client.emit("error", new Error("terminating connection"))).not.toThrow();
    client.release(true);
  },
);
