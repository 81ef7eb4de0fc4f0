import { ProblemError } from "@holdpoint/client";
import { Command, CommanderError } from "commander";
import { approvalsCommand } from "./commands/approvals.ts";
import { appCommands } from "./commands/apps.ts";
import { assignmentsCommand } from "./commands/assignments.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { memoriesCommand } from "./commands/memories.ts";
import { findingsCommand, servicesCommand } from "./commands/on-call.ts";
import { rulesCommand } from "./commands/rules.ts";
import { answerCommand, runsCommand } from "./commands/runs.ts";
import { schedulesCommand } from "./commands/schedules.ts";
import { tasksCommand } from "./commands/tasks.ts";
import { auditCommand, maintenanceCommand, retentionCommand, tombstonesCommand } from "./commands/upkeep.ts";
import { webhooksCommand } from "./commands/webhooks.ts";
import { workersCommand } from "./commands/workers.ts";
import { ENVIRONMENT_HELP, type World } from "./context.ts";
import { EXIT, EXIT_CODES_HELP, exitCodeOf, explain } from "./exit-codes.ts";
import { safe } from "./safe-text.ts";
import { withLocalTimes } from "./times.ts";

/**
 * Runs the command line.
 *
 * @param argv  the arguments after the program's name.
 * @returns the exit code; everything that went wrong was told through `world.err`.
 */
export async function runCli(argv: readonly string[], world: World): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = buildProgram(world, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has told its own errors, and help is none.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    world.err(
      `${argv.includes("--json") ? asJson(error) : `holdpoint: ${withLocalTimes(safe(explain(error)), world.now())}`}\n`,
    );
    return exitCodeOf(error);
  }
}

const COMMANDS = [
  runsCommand,
  approvalsCommand,
  answerCommand,
  rulesCommand,
  assignmentsCommand,
  schedulesCommand,
  memoriesCommand,
  servicesCommand,
  findingsCommand,
  workersCommand,
  auditCommand,
  maintenanceCommand,
  tombstonesCommand,
  retentionCommand,
  webhooksCommand,
];

function buildProgram(world: World, end: (exitCode: number) => void): Command {
  const program = new Command("holdpoint")
    .description("Holdpoint: agent runs that wait for people")
    .enablePositionalOptions()
    .addHelpText("after", `${ENVIRONMENT_HELP}${EXIT_CODES_HELP}`);
  const commands = COMMANDS.map((make) => make(world));
  for (const command of [...commands, tasksCommand(world, end), doctorCommand(world, end), ...appCommands(world, end)])
    program.addCommand(command);
  for (const command of [program, ...descendants(program)]) {
    command
      .exitOverride()
      .configureOutput({ writeOut: world.out.write, writeErr: world.err })
      .showHelpAfterError("(add --help for what is possible)");
  }
  return program;
}

function descendants(command: Command): readonly Command[] {
  return command.commands.flatMap((child) => [child, ...descendants(child)]);
}

/** For programs: what the server said, or the same shape for what went wrong here. */
function asJson(error: unknown): string {
  if (error instanceof ProblemError) return JSON.stringify(error.problem, null, 2);
  const code = error instanceof Error && "code" in error ? error.code : "FAILED";
  return JSON.stringify({ code, detail: explain(error) }, null, 2);
}
