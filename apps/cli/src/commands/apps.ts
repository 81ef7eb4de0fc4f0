import { Command } from "commander";
import type { World } from "../context.ts";

/** The other apps, each with its entry point from the folder `apps`. */
const APPS = {
  dev: { entry: "dev/src/start.ts", summary: "start everything on this machine, until Ctrl-C" },
  migrate: { entry: "dev/src/migrate.ts", summary: "bring the schema and the queue's tables up to date" },
  api: { entry: "api/src/main.ts", summary: "start the api" },
  worker: { entry: "worker/src/main.ts", summary: "start a worker (--agents <module>)" },
  sweeper: { entry: "sweeper/src/main.ts", summary: "start a sweeper" },
} as const;

/** Commands that only start another app, with its own arguments, help, output, signals and exit code. */
export function appCommands(world: World, end: (exitCode: number) => void): readonly Command[] {
  return Object.entries(APPS).map(([name, { entry, summary }]) =>
    new Command(name)
      .description(`${summary}; its own --help says more`)
      .argument("[arguments...]", "passed on as they are")
      .helpOption(false)
      .allowUnknownOption()
      .passThroughOptions()
      .action(async (args: readonly string[]) => end(await world.startApp(entry, args))),
  );
}
