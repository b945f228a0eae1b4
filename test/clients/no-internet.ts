import { Socket } from "node:net";

/** Nothing that runs here may speak to anybody else: a connection to another machine is an error that names it. */

const LOOPBACK = /^(127\.|::1$|localhost$)/;

interface ConnectOptions {
  readonly host?: string;
  readonly path?: string;
}

// The one connect that every client in Node ends at.
const connect = Reflect.get(Socket.prototype, "connect") as (this: Socket, ...of: unknown[]) => Socket;

Socket.prototype.connect = function guarded(this: Socket, ...of: unknown[]): Socket {
  const host = hostOf(of);
  if (!LOOPBACK.test(host)) throw new Error(`A test would have spoken to ${host}.`);
  return Reflect.apply(connect, this, of) as Socket;
};

/** Of `(options)`, `(port, host?)` and `(path)`; `net.connect` hands on its arguments as a list of its own. */
function hostOf(of: readonly unknown[]): string {
  const [first, second] = (Array.isArray(of[0]) ? of[0] : of) as readonly unknown[];
  if (typeof first === "object" && first !== null) {
    const { host, path } = first as ConnectOptions;
    return path ? "localhost" : (host ?? "localhost");
  }
  return typeof first === "number" && typeof second === "string" ? second : "localhost";
}
