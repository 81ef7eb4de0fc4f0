// Run as a process of its own: starts the server of the folder given as argument, prints its port and stays.
import { startPostgres } from "../src/index.ts";

const [, , dataDir] = process.argv;
if (dataDir === undefined) throw new Error("usage: start-and-wait.ts <data folder>");
const server = await startPostgres({ dataDir });
process.stdout.write(`${server.port}\n`);
setInterval(() => undefined, 1_000_000);
