import { once } from "node:events";
import { connect, createServer } from "node:net";

export const LOOPBACK = "127.0.0.1";

/** A port of 127.0.0.1 that nobody listened on a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has no port");
  return address.port;
}

/** Whether a server can listen on this port of 127.0.0.1 now. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, LOOPBACK, () => server.close(() => resolve(true)));
  });
}

/** Whether somebody accepts connections on this port of 127.0.0.1. */
export function isAnswering(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: LOOPBACK, timeout: 1_000 });
    const answer = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => answer(true));
    socket.once("timeout", () => answer(false));
    socket.once("error", () => answer(false));
  });
}
