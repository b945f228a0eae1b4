import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { type Listed, Roster } from "./roster.ts";

export interface UploadPaceOptions {
  /** Minimum average rate of an upload over any whole window. */
  readonly bytesPerSecond: number;
  readonly tickMs?: number;
  /** Called once per upload that is too slow. */
  readonly onSlow: () => void;
}

const WINDOW_MS = 10_000;
const TICK_MS = 1000;

interface Upload extends Listed {
  readonly request: IncomingMessage;
  readonly fail: (error: DomainError) => void;
  /** Bytes per tick of the window; null until the first. */
  ticks: number[] | null;
  tick: number;
  /** Number of ticks spent reading, up to a whole window. */
  read: number;
  sum: number;
  seen: number;
}

/**
 * Aborts slow uploads, because their bytes occupy memory. Time counts in ticks of one timer, so that a busy process or an upload
 * that waits for us does not look like a slow client.
 */
export class UploadPace {
  readonly #options: UploadPaceOptions;
  readonly #tickMs: number;
  readonly #windowTicks: number;
  readonly #uploads = new Roster<Upload>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: UploadPaceOptions) {
    this.#options = options;
    this.#tickMs = options.tickMs ?? TICK_MS;
    this.#windowTicks = Math.max(1, Math.round(WINDOW_MS / this.#tickMs));
  }

  /** Number of watched uploads. */
  get size(): number {
    return this.#uploads.size;
  }

  /**
   * @param fail called once with DomainError `request_timeout` if the upload is too slow; watching ends.
   * @returns a function to call when the upload ends.
   */
  watch(request: IncomingMessage, fail: (error: DomainError) => void): () => void {
    const seen = bytesOf(request);
    const upload: Upload = { request, fail, place: -1, ticks: null, tick: 0, read: 0, sum: 0, seen };
    this.#uploads.add(upload);
    this.#timer ??= setInterval(() => this.tick(), this.#tickMs).unref();
    return () => this.#uploads.delete(upload);
  }

  tick(): void {
    if (this.#uploads.size === 0) {
      clearInterval(this.#timer ?? undefined);
      this.#timer = null;
      return;
    }
    const least = (this.#options.bytesPerSecond * this.#windowTicks * this.#tickMs) / 1000;
    this.#uploads.each((upload) => {
      this.#note(upload);
      if (upload.read < this.#windowTicks || upload.sum >= least) return;
      this.#uploads.delete(upload);
      this.#options.onSlow();
      upload.fail(tooSlow(this.#options.bytesPerSecond));
    });
  }

  #note(upload: Upload): void {
    const seen = bytesOf(upload.request);
    const came = seen - upload.seen;
    upload.seen = seen;
    if (upload.request.isPaused()) return;
    upload.ticks ??= Array<number>(this.#windowTicks).fill(0);
    upload.sum += came - (upload.ticks[upload.tick] ?? 0);
    upload.ticks[upload.tick] = came;
    upload.tick = (upload.tick + 1) % this.#windowTicks;
    upload.read = Math.min(this.#windowTicks, upload.read + 1);
  }
}

/** Counts wire bytes: a compressed body is measured by what its client sends. */
function bytesOf({ socket }: IncomingMessage): number {
  return socket.bytesRead;
}

function tooSlow(bytesPerSecond: number): DomainError {
  const message = `The body arrives too slowly. The minimum is ${bytesPerSecond} bytes per second.`;
  return new DomainError("request_timeout", message);
}
