import { constants } from "node:crypto";
import type { Server, Socket } from "node:net";
import { createServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import { type Certificate, type CertificateFiles, readCertificate } from "./certificate-files.ts";

export interface TlsFrontOptions extends CertificateFiles {
  readonly log: Logger;
  readonly clock: Clock;
  /** For tests. */
  readonly lookEveryMs?: number;
}

const LOOK_EVERY_MS = 10_000;
/** A shutdown waits this long for unfinished handshakes. */
const HANDSHAKE_MS = 5000;
const WARN_BEFORE_MS = 14 * 24 * 3_600_000;
const WARN_EVERY_MS = 24 * 3_600_000;
const OPTIONS = {
  ALPNProtocols: ["http/1.1"],
  minVersion: "TLSv1.2",
  handshakeTimeout: HANDSHAKE_MS,
  // Renegotiation is useless for HTTP and costs a handshake per message.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** TLS for both hosts. Certificate files are checked periodically; new connections use the new certificate, open ones continue. */
export class TlsFront {
  readonly #options: TlsFrontOptions;
  readonly #servers: TlsServer[] = [];
  readonly #timer: NodeJS.Timeout;
  #certificate: Certificate;
  #fault = "";
  #warnedAt: number | null = null;

  /** @throws StartError if the files are invalid */
  constructor(options: TlsFrontOptions) {
    this.#options = options;
    this.#certificate = readCertificate(options);
    this.#warnOfExpiry();
    this.#timer = setInterval(() => this.#look(), options.lookEveryMs ?? LOOK_EVERY_MS).unref();
  }

  /** Unix milliseconds. */
  get expiresAt(): number {
    return this.#certificate.expiresAt;
  }

  /** Turns an HTTP server into an HTTPS server. */
  serve(server: Server): void {
    const { cert, key } = this.#certificate;
    const tls = createServer({ ...OPTIONS, cert, key });
    const http = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (raw: Socket) => void tls.emit("connection", raw));
    tls.on("secureConnection", (socket: TLSSocket) => {
      for (const listener of http) listener.call(server, socket);
    });
    // Failed handshakes of strangers are too frequent to log.
    tls.on("tlsClientError", (_error, socket) => socket.destroy());
    this.#servers.push(tls);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { log } = this.#options;
    try {
      this.#use(readCertificate(this.#options));
      this.#fault = "";
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      // Logged once: the files do not match while they are replaced one after the other.
      if (why !== this.#fault) log.warn({ why }, "the TLS files are invalid; the previous certificate stays in use");
      this.#fault = why;
    }
    this.#warnOfExpiry();
  }

  #use(found: Certificate): void {
    const { cert, key, expiresAt } = found;
    if (cert === this.#certificate.cert && key === this.#certificate.key) return;
    for (const server of this.#servers) server.setSecureContext({ ...OPTIONS, cert, key });
    this.#certificate = found;
    this.#warnedAt = null;
    this.#options.log.info({ expiresAt: rfc3339(expiresAt) }, "the TLS certificate was replaced");
  }

  #warnOfExpiry(): void {
    const { log, clock, certFile } = this.#options;
    if (this.expiresAt - clock.now() > WARN_BEFORE_MS) return;
    if (this.#warnedAt !== null && clock.monotonic() - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = clock.monotonic();
    log.warn({ expiresAt: rfc3339(this.expiresAt), certFile }, "the TLS certificate expires soon");
  }
}
