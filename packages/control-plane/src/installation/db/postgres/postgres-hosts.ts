import { Socket } from "node:net";
import { callbackify } from "node:util";
import pg from "pg";
import { splitHosts } from "./postgres-url.ts";

const READ_WRITE = "read-write";

/** The hosts of a PostgreSQL URL in libpq's format: `postgres://user@one:5432,two:5432/database?target_session_attrs=read-write`. */
export class PostgresHosts {
  /** Private, so that printing the pool does not reveal passwords. */
  readonly #urls: readonly string[];
  /** Whether read-only servers are skipped; always with several hosts. */
  readonly mustWrite: boolean;
  #current = 0;

  constructor(url: string) {
    this.#urls = splitHosts(url);
    this.mustWrite = this.#urls.length > 1 || this.#urls.some(asksForWrites);
  }

  get count(): number {
    return this.#urls.length;
  }

  /** @returns a URL with only this host. */
  urlOf(host: number): string | undefined {
    return this.#urls[host];
  }

  get current(): number {
    return this.#current;
  }

  /** The next connection tries the host after this one. */
  failed(host: number): void {
    if (host === this.#current) this.#current = (host + 1) % this.#urls.length;
  }
}

function asksForWrites(url: string): boolean {
  return new URL(url).searchParams.get("target_session_attrs") === READ_WRITE;
}

export interface HostClientOptions extends pg.ClientConfig {
  readonly hosts: PostgresHosts;
}

type OnConnect = (error: Error | null) => void;

/** Connects to the current host, and moves on if it fails or is read-only. */
export class HostClient extends pg.Client {
  readonly #hosts: PostgresHosts;
  readonly #host: number;
  readonly #socket: Socket;

  constructor({ hosts, ...options }: HostClientOptions) {
    const host = hosts.current;
    const socket = new Socket();
    super({ ...options, connectionString: hosts.urlOf(host), stream: () => socket });
    this.#hosts = hosts;
    this.#host = host;
    this.#socket = socket;
  }

  /** Closes the socket immediately, without notifying the server, which may hang. */
  abort(): void {
    this.#socket.destroy();
  }

  override connect(): Promise<this>;
  override connect(callback: OnConnect): void;
  override connect(callback?: OnConnect): Promise<this> | void {
    if (callback !== undefined) return callbackify(() => this.#connect())(callback);
    return this.#connect().then(() => this);
  }

  async #connect(): Promise<void> {
    try {
      await super.connect();
      if (this.#hosts.mustWrite) await this.#refuseReadOnly();
    } catch (error) {
      this.#hosts.failed(this.#host);
      throw error;
    }
  }

  async #refuseReadOnly(): Promise<void> {
    const { rows } = await this.query<{ transaction_read_only: string }>("show transaction_read_only");
    if (rows[0]?.transaction_read_only === "off") return;
    this.abort();
    throw Object.assign(new Error("this PostgreSQL server is read-only"), { code: "25006" });
  }
}
