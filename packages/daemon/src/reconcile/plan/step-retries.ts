import { ceiling } from "@fairlead/protocol/values/backoff";
import { keyOf, type Step } from "./steps.ts";

interface Retry {
  readonly attempts: number;
  readonly notBefore: number;
  readonly message: string;
}

const BACKOFF = { baseMs: 2000, maxMs: 300_000 };

/** Exponential backoff for failed steps, reset by a success. Times are monotonic milliseconds. */
export class StepRetries {
  readonly #retries = new Map<string, Retry>();

  failed(step: Step, message: string, now: number): void {
    const attempts = (this.#retries.get(idOf(step))?.attempts ?? 0) + 1;
    this.#retries.set(idOf(step), { attempts, notBefore: now + ceiling(BACKOFF, attempts - 1), message });
  }

  succeeded(step: Step): void {
    this.#retries.delete(idOf(step));
  }

  forgetAll(): void {
    this.#retries.clear();
  }

  /** When a step may be tried; 0 if it has not failed. */
  notBefore(step: Step): number {
    return this.#retries.get(idOf(step))?.notBefore ?? 0;
  }

  /** Forgets steps that are no longer planned. */
  keepOnly(steps: readonly Step[]): void {
    const wanted = new Set(steps.map(idOf));
    for (const id of this.#retries.keys()) if (!wanted.has(id)) this.#retries.delete(id);
  }

  /** Messages of a workload's failed steps. @param pullKey of its image's pull, or null */
  messages(workloadId: string, pullKey: string | null): string[] {
    return [...this.#retries].flatMap(([id, retry]) =>
      id.startsWith(`workload ${workloadId} `) || id === `${pullKey} pull` ? [messageOf(retry)] : [],
    );
  }
}

/** The first failure is often the only one. */
function messageOf({ message, attempts }: Retry): string {
  return attempts === 1 ? message : `${message} (${attempts} attempts)`;
}

function idOf(step: Step): string {
  return `${keyOf(step)} ${step.type}`;
}
