import { connect, type Socket } from "node:net";
import { type Closable, drained } from "./attack.ts";

const CONNECT_MS = 4000;

/** A bare connection to one of the hosts. @returns null where it cannot be made. */
export function rawSocket(url: string, localAddress: string): Promise<Socket | null> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), CONNECT_MS);
    const settle = (made: Socket | null): void => {
      clearTimeout(timer);
      resolve(made);
    };
    socket.on("error", () => settle(null));
    socket.on("connect", () => settle(socket));
  });
}

interface RawOptions {
  readonly url: string;
  readonly localAddress: string;
  readonly bytes: readonly (string | Buffer)[];
  /** Closed with the others at the round's end. */
  readonly open: Set<Closable>;
  /** How long to wait for the response's head. */
  readonly waitMs: number;
}

/** Sends bytes as they are. @returns what came back, "" where nothing did. The connection stays open. */
export async function rawExchange({ url, localAddress, bytes, open, waitMs }: RawOptions): Promise<string> {
  const socket = await rawSocket(url, localAddress);
  if (socket === null) return "";
  open.add(socket);
  let text = "";
  const heard = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, waitMs);
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    socket.on("data", (piece: Buffer) => {
      text += piece.toString("latin1");
      done();
    });
    socket.once("close", done);
  });
  for (const piece of bytes) {
    if (socket.destroyed) break;
    socket.write(piece);
    await drained(socket);
  }
  await heard;
  return text;
}
