import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Stands between us and a server, and fails on demand. Its address stays the same all its life. */
export interface FaultProxy extends AsyncDisposable {
  readonly address: Address;
  /** The server is away: connections break, new ones are refused. */
  cut(): Promise<void>;
  /** The server hangs: connections stay, no byte comes through any more. */
  freeze(): void;
  /** The server is back. */
  restore(): Promise<void>;
}

/** Opens a proxy that lets everything through. */
export async function openFaultProxy(target: Address): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  let frozen = false;
  let server: Server = serve();
  let port = 0;

  function serve(): Server {
    return createServer((near) => {
      const far = connect({ ...target });
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on("data", (bytes) => to.write(bytes));
        from.on("error", () => to.destroy());
        from.on("close", () => {
          sockets.delete(from);
          to.destroy();
        });
        if (frozen) from.pause();
      }
    });
  }

  async function listen(): Promise<void> {
    server = serve().listen(port, "127.0.0.1");
    await once(server, "listening");
    // A server on TCP has an address object.
    port = (server.address() as AddressInfo).port;
  }

  async function cut(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  await listen();
  return {
    address: { host: "127.0.0.1", port },
    cut,
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    async restore() {
      frozen = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) await listen();
    },
    [Symbol.asyncDispose]: cut,
  };
}
