import type { Clock } from "@fairlead/protocol/values/clock";
import { urlBelow } from "@fairlead/protocol/values/url";
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { z } from "zod";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import type { DurableRecord } from "../state/durable-record.ts";

/** `/.well-known/jwks.json`. Unknown key types of newer servers are kept. */
export const platformKeysSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });
type PublishedKeys = z.infer<typeof platformKeysSchema>;

export interface PlatformKeysDeps {
  readonly platformUrl: string;
  readonly http: HttpClient;
  /** Used while the platform host is unreachable. */
  readonly record: DurableRecord<PublishedKeys>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
}

/** The key cannot be checked because the platform host is unreachable. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

const CALL_TIMEOUT_MS = 5000;
/** Upper bound on how long a withdrawn key is accepted while the platform is reachable. */
const REFRESH_MS = 3_600_000;
/** Unknown keys usually mean a rotation; this limits how often they trigger a request. */
const PAUSE_MS = 1000;

/** The platform's public signing keys: fetched when an unknown key is used, cached on disk. */
export class PlatformKeys {
  readonly #deps: PlatformKeysDeps;
  #find: JWTVerifyGetKey = createLocalJWKSet({ keys: [] });
  #text = "";
  #version = 0;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(deps: PlatformKeysDeps) {
    this.#deps = deps;
  }

  /** Incremented when the keys change; earlier verifications are then invalid. */
  get version(): number {
    return this.#version;
  }

  async load(): Promise<void> {
    const { value, damaged } = await this.#deps.record.load();
    if (damaged) this.#deps.log.warn("a copy of the platform's public keys on disk is damaged");
    if (value !== null) this.#use(value);
  }

  /** For `jwtVerify`. @throws JOSEError for an unpublished key; KeysUnavailable */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#sinceAsked() >= REFRESH_MS) this.#ask().catch(() => undefined);
    try {
      return await this.#find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#ask();
    return this.#find(header, token);
  };

  #sinceAsked(): number {
    return this.#deps.clock.monotonic() - this.#askedAt;
  }

  /** Concurrent callers share one request. @throws KeysUnavailable */
  #ask(): Promise<void> {
    this.#asking ??= this.#pauseAndFetch().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #pauseAndFetch(): Promise<void> {
    const pauseMs = PAUSE_MS - this.#sinceAsked();
    if (pauseMs > 0) await sleep(this.#deps.timers, pauseMs);
    this.#askedAt = this.#deps.clock.monotonic();
    await this.#fetch();
  }

  async #fetch(): Promise<void> {
    const { http, platformUrl, log } = this.#deps;
    try {
      const url = urlBelow(platformUrl, "/.well-known/jwks.json");
      const answer = await http({ method: "GET", url, timeoutMs: CALL_TIMEOUT_MS });
      if (answer.status !== 200) throw new Error(`the platform host returned ${answer.status}`);
      const keys = platformKeysSchema.parse(jsonOf(answer));
      if (this.#use(keys)) await this.#save(keys);
    } catch (cause) {
      log.warn({ reason: reasonOf(cause) }, "could not fetch the platform's public keys");
      throw new KeysUnavailable("the platform's public keys are unavailable", { cause });
    }
  }

  async #save(keys: PublishedKeys): Promise<void> {
    await this.#deps.record.save(keys).catch((error: unknown) => {
      this.#deps.log.error({ reason: reasonOf(error) }, "could not save the platform's public keys");
    });
  }

  /** @returns whether the keys changed. */
  #use(keys: PublishedKeys): boolean {
    const text = JSON.stringify(keys);
    if (text === this.#text) return false;
    this.#text = text;
    this.#version += 1;
    this.#find = createLocalJWKSet(keys);
    return true;
  }
}
