#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import { coloursFor } from "./colours.ts";
import { lineWidth } from "./line-width.ts";
import { runCli } from "./run-cli.ts";
import { startApp } from "./start-app.ts";

const { stdout, env } = process;
const colours = coloursFor(stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb");

// Who reads only the first lines of a list closes the pipe.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
process.exitCode = await runCli(process.argv.slice(2), {
  env,
  out: { write: (text) => void stdout.write(text), colours, width: lineWidth(stdout, env) },
  err: (text) => void process.stderr.write(text),
  now: () => new Date(),
  readText: (path) => readFile(path, "utf8"),
  startApp,
});
