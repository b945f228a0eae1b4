import { createServer } from "node:net";
import { StartError } from "../start-error.ts";

/** A port that is ours until `release`, which comes right before the real server listens on it. */
export interface ReservedPort {
  readonly port: number;
  release(): Promise<void>;
}

export interface PortRequest {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Named to the operator: the setting to change. */
  readonly setting: string;
}

/** Finds out about a taken port before the store is touched, and which port it will be, as URLs need it. @throws StartError */
export async function reservePort(request: PortRequest): Promise<ReservedPort> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, request)));
    server.listen({ host: request.host, port: request.port, exclusive: true }, resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : request.port;
  return { port, release: () => new Promise<void>((resolve) => void server.close(() => resolve())) };
}

/** `http://host:port`, with a host that a client can use where the server listens on every address. */
export function urlOf(host: string, port: number): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

function explain(error: NodeJS.ErrnoException, { host, port, setting }: PortRequest): Error {
  const where = `${host}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new StartError(`Port ${where} is taken by another program. Stop that, or set ${setting} to a free port.`);
    case "EACCES":
      return new StartError(`Port ${where} needs more rights than this user has. Set ${setting} to one above 1023.`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new StartError(`This machine has no address ${host}. Correct the host beside ${setting}.`);
    default:
      return error;
  }
}
