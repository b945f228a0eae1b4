import { createServer, type Server } from "node:net";
import { StartError } from "../../installation/process/start-error.ts";

/** A reserved port; `release` it right before the server listens. */
export interface ReservedPort {
  readonly port: number;
  release(): Promise<void>;
}

export interface PortRequest {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The setting named in errors. */
  readonly setting: string;
}

/** Detects a port in use before the store is opened, and determines the port for URLs. @throws StartError */
export async function reservePort(request: PortRequest): Promise<ReservedPort> {
  const server = createServer();
  await listen(server, request);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : request.port;
  return { port, release: () => new Promise<void>((resolve) => void server.close(() => resolve())) };
}

/**
 * Backlog of connections that the kernel queues until they are accepted (capped by `net.core.somaxconn`, 4,096 on current kernels).
 * Node's default of 511 overflows in a burst, and clients then retry after 1, 3 and 7 seconds.
 */
const BACKLOG = 4096;

/** Sits between a listener and its server. */
export interface Front {
  readonly tls: { serve(server: Server): void } | null;
  readonly connections: { guard(server: Server): void };
}

/** Starts listening. @throws StartError, like `reservePort`. */
export async function listen(server: Server, request: PortRequest, front: Front | null = null): Promise<void> {
  front?.tls?.serve(server);
  front?.connections.guard(server);
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(explain(error, request));
    server.once("error", fail);
    server.listen({ host: request.host, port: request.port, backlog: BACKLOG }, () => {
      server.off("error", fail);
      resolve();
    });
  });
}

/** `http://host:port`, with a host that clients can use if the server listens on all interfaces. */
export function urlOf(host: string, port: number, scheme: "http" | "https" = "http"): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${scheme}://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

function explain(error: NodeJS.ErrnoException, { host, port, setting }: PortRequest): Error {
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${host}:${port} is already in use. Stop the program that uses it, or set ${setting} to a free port.`,
    EACCES: `You do not have permission to listen on port ${host}:${port}. Set ${setting} to a port above 1023.`,
    EADDRNOTAVAIL: `This machine does not have the address ${host}. Correct the host next to ${setting}.`,
    ENOTFOUND: `This machine does not have the address ${host}. Correct the host next to ${setting}.`,
  };
  const message = advice[error.code ?? ""];
  return message === undefined ? error : new StartError(message);
}
