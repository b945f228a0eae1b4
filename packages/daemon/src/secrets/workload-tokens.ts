import { WORKER_TOKEN_FILE } from "@fairlead/protocol/secrets";
import { type BackoffOptions, fullJitter } from "@fairlead/protocol/values/backoff";
import type { DesiredState } from "@fairlead/protocol/workload";
import type { LinkConnection } from "../link/control-link.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";

/** Writes files into the workload's secrets folder. */
export interface TokenFiles {
  put(workloadId: string, name: string, bytes: Uint8Array): void;
  /** Removes it from all containers. */
  withdraw(workloadId: string, name: string): void;
}

export interface WorkloadTokensDeps {
  readonly files: TokenFiles;
  readonly timers: Timers;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: DaemonLog;
}

type TokenLink = Pick<LinkConnection, "workerToken">;

const BACKOFF: BackoffOptions = { baseMs: 1000, maxMs: 60_000 };

/**
 * Writes a token file for each workload that requests one and renews it in place after two thirds of its lifetime. A new desired
 * state may start a new run, for which old tokens are invalid. So each new state requests new tokens, and tokens that belong to an
 * earlier run are removed.
 */
export class WorkloadTokens {
  readonly #deps: WorkloadTokensDeps;
  readonly #renewals = new Map<string, Renewal>();
  #link: TokenLink | null = null;

  constructor(deps: WorkloadTokensDeps) {
    this.#deps = deps;
  }

  desiredChanged({ workloads }: DesiredState): void {
    const wanted = workloads.filter((spec) => spec.workerToken === true);
    const runs = new Map(wanted.map(({ workloadId, restarts = 0 }) => [workloadId, restarts]));
    for (const [workloadId, renewal] of this.#renewals) {
      if (runs.get(workloadId) === renewal.run) continue;
      renewal.close();
      this.#renewals.delete(workloadId);
      // The token is invalid, so the next run must not start with it.
      this.#deps.files.withdraw(workloadId, WORKER_TOKEN_FILE);
    }
    for (const [workloadId, run] of runs) {
      const renewal = this.#renewals.get(workloadId) ?? new Renewal(this.#deps, { workloadId, run }, () => this.#link);
      this.#renewals.set(workloadId, renewal);
      renewal.ask();
    }
  }

  attach(link: TokenLink): void {
    this.#link = link;
    for (const renewal of this.#renewals.values()) if (renewal.isDue) renewal.ask();
  }

  detach(): void {
    this.#link = null;
  }

  close(): void {
    this.#link = null;
    for (const renewal of this.#renewals.values()) renewal.close();
  }
}

/** Renews the token of one run of a workload. */
class Renewal {
  readonly run: number;
  readonly #deps: WorkloadTokensDeps;
  readonly #workloadId: string;
  readonly #link: () => TokenLink | null;
  #question = 0;
  #failures = 0;
  #cancel: () => void = () => undefined;
  isDue = true;

  constructor(
    deps: WorkloadTokensDeps,
    { workloadId, run }: { readonly workloadId: string; readonly run: number },
    link: () => TokenLink | null,
  ) {
    this.#deps = deps;
    this.#workloadId = workloadId;
    this.run = run;
    this.#link = link;
  }

  /** Requests a token now or once linked, and discards earlier requests. */
  ask(): void {
    this.close();
    this.isDue = true;
    const link = this.#link();
    if (link !== null) void this.#ask(link, this.#question);
  }

  close(): void {
    this.#cancel();
    this.#question += 1;
  }

  async #ask(link: TokenLink, question: number): Promise<void> {
    let nextMs: number;
    try {
      const answer = await link.workerToken({ workloadId: this.#workloadId });
      if (question !== this.#question) return;
      nextMs = this.#take(answer);
    } catch (error) {
      if (question !== this.#question) return;
      this.#deps.log.warn(
        { workload: this.#workloadId, reason: reasonOf(error) },
        "could not get a workload token; retrying",
      );
      nextMs = this.#retryMs();
    }
    this.#cancel = this.#deps.timers.after(nextMs, () => this.ask());
  }

  /** @returns when the next token is due. */
  #take(answer: Awaited<ReturnType<TokenLink["workerToken"]>>): number {
    const { files, log, random } = this.#deps;
    if (answer.state === "none") {
      log.warn({ workload: this.#workloadId }, "the platform issues no token for this workload");
      files.withdraw(this.#workloadId, WORKER_TOKEN_FILE);
      return this.#retryMs();
    }
    files.put(this.#workloadId, WORKER_TOKEN_FILE, Buffer.from(answer.token));
    this.isDue = false;
    this.#failures = 0;
    // Jitter, in case many started together.
    return ((answer.expiresIn * 1000 * 2) / 3) * (1 - random() / 10);
  }

  #retryMs(): number {
    return fullJitter(BACKOFF, this.#failures++, this.#deps.random());
  }
}
