import { keyOfSecret } from "@fairlead/protocol/secrets";
import { fullJitter } from "@fairlead/protocol/values/backoff";
import type { DesiredState } from "@fairlead/protocol/workload";
import type { LinkConnection } from "../link/control-link.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import type { SecretVault } from "./secret-vault.ts";

export interface SecretFetcherDeps {
  readonly vault: SecretVault;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
  /** The vault's contents or the reasons for missing secrets changed. */
  readonly onChange: () => void;
}

const BACKOFF = { baseMs: 1000, maxMs: 60_000 };

/**
 * Fetches the desired secrets into the vault over the link, one at a time. Secrets that the control plane does not have are retried
 * with the next desired state or link; failures after a delay.
 */
export class SecretFetcher {
  readonly #deps: SecretFetcherDeps;
  readonly #problems = new Map<string, string>();
  #wanted: ReadonlyMap<string, string | null> = new Map();
  #connection: Pick<LinkConnection, "secret"> | null = null;
  #running: Promise<void> | null = null;
  #again = false;
  #failures = 0;
  #closed = false;
  #cancelRetry: () => void = () => undefined;

  constructor(deps: SecretFetcherDeps) {
    this.#deps = deps;
  }

  desiredChanged(desired: DesiredState): void {
    const secrets = desired.workloads.flatMap((workload) => workload.secrets ?? []);
    this.#wanted = new Map(secrets.map((secret) => [keyOfSecret(secret), secret.version]));
    this.#problems.clear();
    this.#wake();
  }

  attach(connection: Pick<LinkConnection, "secret">): void {
    this.#connection = connection;
    this.#problems.clear();
    this.#wake();
  }

  detach(): void {
    this.#connection = null;
  }

  /** Whether the desired state contains it, set or not. */
  wants(key: string): boolean {
    return this.#wanted.has(key);
  }

  /** Why a secret is unavailable, such as `is not set`, or null. */
  problemWith(key: string): string | null {
    return this.#problems.get(key) ?? null;
  }

  /** Resolves when the running fetch ends, if any. */
  async fetching(): Promise<void> {
    await this.#running;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry();
    await this.#running;
  }

  #wake(): void {
    this.#again = true;
    if (this.#closed || this.#running !== null) return;
    this.#cancelRetry();
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (this.#again) this.#wake();
    });
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        await this.#update();
        this.#failures = 0;
      } catch (error) {
        this.#failures += 1;
        this.#deps.log.warn({ reason: reasonOf(error) }, "could not update secrets; retrying");
        const delay = fullJitter(BACKOFF, this.#failures, this.#deps.random());
        this.#cancelRetry();
        this.#cancelRetry = this.#deps.timers.after(delay, () => this.#wake());
      }
    }
  }

  async #update(): Promise<void> {
    const { vault, onChange } = this.#deps;
    let changed = false;
    try {
      for (const [key, version] of this.#wanted) {
        if (version === null) changed = vault.forget(key) || changed;
        else if (version !== vault.versionOf(key) && !this.#problems.has(key)) {
          if (this.#connection === null) continue;
          await this.#fetch(this.#connection, key);
          changed = true;
        }
      }
    } finally {
      // Use what was fetched, even if a later fetch or saving failed.
      if (changed) onChange();
    }
    await vault.save();
  }

  async #fetch(connection: Pick<LinkConnection, "secret">, key: string): Promise<void> {
    const answer = await connection.secret({ name: key });
    const problem = await this.#take(key, answer);
    if (problem === null) this.#deps.log.info({ secret: key }, "received a secret");
    else {
      this.#problems.set(key, problem);
      this.#deps.log.warn({ secret: key }, `the secret ${problem}`);
    }
  }

  async #take(key: string, answer: Awaited<ReturnType<LinkConnection["secret"]>>): Promise<string | null> {
    switch (answer.state) {
      case "missing":
        return NOT_SET;
      case "stale":
        return STALE;
      case "sealed":
        return (await this.#deps.vault.put(key, answer)) ? null : "cannot be decrypted by this node";
    }
  }
}

export const NOT_SET = "is not set";
export const STALE = "was encrypted to a former key of this node: set it again";
