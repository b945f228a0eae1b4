import type { Clock } from "@fairlead/protocol/clock";
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { z } from "zod";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import { type Log, reasonOf } from "../log.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import { sleep, type Timers } from "../timers.ts";

/** `/.well-known/jwks.json`. A newer server may publish keys of other kinds; they are kept and not understood. */
export const platformKeysSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });
type PublishedKeys = z.infer<typeof platformKeysSchema>;

export interface PlatformKeysDeps {
  readonly platformUrl: string;
  readonly http: HttpClient;
  /** What the daemon starts with while the platform host does not answer. */
  readonly record: DurableRecord<PublishedKeys>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

/** The key cannot be told from a wrong one now: the platform host does not answer. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

const CALL_TIMEOUT_MS = 5000;
/** A key that was withdrawn counts for so long at most, while the platform host answers. */
const REFRESH_MS = 3_600_000;
/** The relay lets no made-up key through, so an unknown one is a rotation; still, nobody shall make this node ask without end. */
const PAUSE_MS = 1000;

/** The public keys that the platform signs with: asked for when an unknown one comes, kept on disk. */
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

  /** Grows whenever the keys change: whatever was verified by the older ones must be verified anew. */
  get version(): number {
    return this.#version;
  }

  async load(): Promise<void> {
    const { value, damaged } = await this.#deps.record.load();
    if (damaged) this.#deps.log.warn("a copy of the platform's public keys on disk was damaged");
    if (value !== null) this.#use(value);
  }

  /** For `jwtVerify`. @throws JOSEError for a key that the platform does not publish, KeysUnavailable */
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

  /** One call for all who wait. @throws KeysUnavailable */
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
      const url = new URL("/.well-known/jwks.json", platformUrl).href;
      const answer = await http({ method: "GET", url, timeoutMs: CALL_TIMEOUT_MS });
      if (answer.status !== 200) throw new Error(`the platform host answered ${answer.status}`);
      const keys = platformKeysSchema.parse(jsonOf(answer));
      if (this.#use(keys)) await this.#save(keys);
    } catch (cause) {
      log.warn({ reason: reasonOf(cause) }, "could not get the platform's public keys");
      throw new KeysUnavailable("the platform's public keys cannot be had", { cause });
    }
  }

  async #save(keys: PublishedKeys): Promise<void> {
    await this.#deps.record.save(keys).catch((error: unknown) => {
      this.#deps.log.error({ reason: reasonOf(error) }, "the platform's public keys could not be saved");
    });
  }

  /** @returns whether they are others than before. */
  #use(keys: PublishedKeys): boolean {
    const text = JSON.stringify(keys);
    if (text === this.#text) return false;
    this.#text = text;
    this.#version += 1;
    this.#find = createLocalJWKSet(keys);
    return true;
  }
}
