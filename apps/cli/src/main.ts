#!/usr/bin/env node
import { coloursFor } from "./colours.ts";
import { runCli } from "./run-cli.ts";
import { startApp } from "./start-app.ts";

const NARROWEST = 80;
const WIDEST = 160;
const { stdout, env } = process;
const colours = coloursFor(stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb");
const width = Math.min(WIDEST, Math.max(NARROWEST, stdout.isTTY === true ? stdout.columns : 120));

// Who reads only the first lines of a list closes the pipe.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
process.exitCode = await runCli(process.argv.slice(2), {
  env,
  out: { write: (text) => void stdout.write(text), colours, width },
  err: (text) => void process.stderr.write(text),
  now: () => new Date(),
  startApp,
});
