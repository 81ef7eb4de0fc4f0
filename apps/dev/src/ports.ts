import { once } from "node:events";
import { createServer } from "node:net";

const DEFAULT_API_PORT = 4080;

/**
 * The api's port: the one that was asked for, else 4080 where it is free, else 0 (any free one).
 *
 * @throws {Error} what was asked for is no port.
 */
export async function chooseApiPort(asked: string | undefined): Promise<number> {
  if (asked === undefined || asked === "") return (await isFree(DEFAULT_API_PORT)) ? DEFAULT_API_PORT : 0;
  if (!/^\d{1,5}$/.test(asked) || Number(asked) > 65_535)
    throw new Error(`HOLDPOINT_API_PORT is "${asked}": it must be 0 to 65535`);
  return Number(asked);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false; // taken: the answer itself
  } finally {
    server.close();
  }
}
