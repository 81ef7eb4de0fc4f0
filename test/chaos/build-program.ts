import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

/** A program in one file, in a folder of its own. */
export interface BuiltProgram extends AsyncDisposable {
  readonly path: string;
}

const ENTRY = join(import.meta.dirname, "worker-program.ts");

/**
 * Bundles the working processes' program, with all that it imports: a process that is going to be killed starts twice
 * as fast from one file.
 */
export async function buildProgram(): Promise<BuiltProgram> {
  const outDir = await mkdtemp(join(tmpdir(), "holdpoint-chaos-"));
  await build({
    configFile: false,
    logLevel: "error",
    ssr: { noExternal: true },
    build: {
      ssr: ENTRY,
      outDir,
      target: "node24",
      // pg looks for it and goes on without it.
      rolldownOptions: { external: ["pg-native"], output: { entryFileNames: "program.mjs" } },
    },
  });
  return {
    path: join(outDir, "program.mjs"),
    [Symbol.asyncDispose]: () => rm(outDir, { recursive: true }),
  };
}
