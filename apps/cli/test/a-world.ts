import { readFile } from "node:fs/promises";
import { coloursFor } from "../src/colours.ts";
import type { World } from "../src/context.ts";
import { runCli } from "../src/run-cli.ts";

/** What a command printed and ended with. */
export interface Ran {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process, without a terminal. */
export async function run(argv: readonly string[], given: Partial<World> = {}): Promise<Ran> {
  let out = "";
  let err = "";
  const world: World = {
    env: {},
    out: {
      write: (text) => {
        out += text;
      },
      colours: coloursFor(false),
      width: 100,
    },
    err: (text) => {
      err += text;
    },
    now: () => new Date(),
    readText: async (path) => readFile(path, "utf8"),
    startApp: async () => 0,
    ...given,
  };
  return { exitCode: await runCli(argv, world), out, err };
}
