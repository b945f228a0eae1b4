import { createServer, type Server } from "node:net";
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
  await listen(server, request);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : request.port;
  return { port, release: () => new Promise<void>((resolve) => void server.close(() => resolve())) };
}

/** Makes a server listen, behind TLS where there is one. @throws StartError in words for the operator, like `reservePort`. */
export async function listen(
  server: Server,
  request: PortRequest,
  tls: { serve(server: Server): void } | null = null,
): Promise<void> {
  tls?.serve(server);
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(explain(error, request));
    server.once("error", fail);
    server.listen({ host: request.host, port: request.port }, () => {
      server.off("error", fail);
      resolve();
    });
  });
}

/** `http://host:port`, with a host that a client can use where the server listens on every address. */
export function urlOf(host: string, port: number, scheme: "http" | "https" = "http"): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${scheme}://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

function explain(error: NodeJS.ErrnoException, { host, port, setting }: PortRequest): Error {
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${host}:${port} is taken by another program. Stop that, or set ${setting} to a free port.`,
    EACCES: `Port ${host}:${port} needs more rights than this user has. Set ${setting} to one above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Correct the host beside ${setting}.`,
    ENOTFOUND: `This machine has no address ${host}. Correct the host beside ${setting}.`,
  };
  const message = advice[error.code ?? ""];
  return message === undefined ? error : new StartError(message);
}
