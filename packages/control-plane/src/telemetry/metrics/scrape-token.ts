import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { bearerToken } from "@fairlead/hosting/requests/bearer";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Log } from "../../installation/process/log.ts";
import { StartError } from "../../installation/process/start-error.ts";

export interface ScrapeTokenOptions {
  /** `metrics.tokenFile`. */
  readonly file: string;
  readonly clock: Clock;
  readonly log: Log;
}

const LOOK_EVERY_MS = 5000;
const MIN_CHARACTERS = 16;
const MAX_BYTES = 4096;
const EVERYONE_MAY = 0o007;

/** Token of remote scrapers. A replaced file is used within five seconds; while it cannot be read, no token is accepted. */
export class ScrapeToken {
  readonly #options: ScrapeTokenOptions;
  #digest: Buffer | null;
  #readAt: number;
  #fault = "";

  /** @throws StartError if the file cannot be read, contains no token, or is accessible to all users */
  constructor(options: ScrapeTokenOptions) {
    this.#options = options;
    this.#readAt = options.clock.monotonic();
    this.#digest = digestOf(readToken(options.file));
  }

  /** @param header `Authorization` as sent. */
  matches(header: string | undefined): boolean {
    const token = bearerToken(header);
    if (token === null) return false;
    this.#look();
    return this.#digest !== null && timingSafeEqual(digestOf(token), this.#digest);
  }

  #look(): void {
    const { file, clock, log } = this.#options;
    if (clock.monotonic() - this.#readAt < LOOK_EVERY_MS) return;
    this.#readAt = clock.monotonic();
    try {
      this.#digest = digestOf(readToken(file));
      this.#fault = "";
    } catch (error) {
      this.#digest = null;
      const why = error instanceof Error ? error.message : String(error);
      if (why !== this.#fault) log.warn({ why }, "scrapers are rejected until metrics.tokenFile can be used");
      this.#fault = why;
    }
  }
}

function readToken(file: string): string {
  const { mode, size } = stat(file);
  if ((mode & EVERYONE_MAY) !== 0) {
    throw new StartError(`metrics.tokenFile ${file} is accessible to all users. Run: chmod 640 ${file}`);
  }
  if (size > MAX_BYTES) throw new StartError(`metrics.tokenFile ${file} must contain at most ${MAX_BYTES} bytes.`);
  const token = read(file);
  if (token.length >= MIN_CHARACTERS) return token;
  throw new StartError(`metrics.tokenFile ${file} must contain at least ${MIN_CHARACTERS} characters.`);
}

function stat(file: string): { readonly mode: number; readonly size: number } {
  try {
    return statSync(file);
  } catch (error) {
    throw unreadable(error);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw unreadable(error);
  }
}

function unreadable(error: unknown): StartError {
  return new StartError(`metrics.tokenFile cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
}

/** Digests have equal length, so that the comparison reveals nothing. */
function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
