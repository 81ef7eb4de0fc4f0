import type { Reply } from "@holdpoint/protocol";
import { Command } from "commander";
import type { World } from "../context.ts";
import { EXIT } from "../exit-codes.ts";
import { showDoctor } from "../show/doctor.ts";
import { askAndPrint, type CommonOptions, jsonOption } from "./shared.ts";

/** What the worst of the checks means for a script. */
const CODES = { ok: EXIT.ok, warn: EXIT.warned, fail: EXIT.failed } as const satisfies Record<
  Reply<"showDoctor">["worst"],
  number
>;

/** `holdpoint doctor`: the exit code is that of the worst check. */
export function doctorCommand(world: World, end: (exitCode: number) => void): Command {
  return new Command("doctor")
    .description("whether database, queue, clocks, sweepers and versions are as they have to be")
    .addOption(jsonOption())
    .action((options: CommonOptions) =>
      askAndPrint(world, options, {
        ask: async (client) => {
          const found = await client.showDoctor();
          end(CODES[found.worst]);
          return found;
        },
        show: showDoctor,
      }),
    );
}
