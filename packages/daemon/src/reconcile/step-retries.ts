import { ceiling } from "@fairlead/protocol/backoff";
import { keyOf, type Step } from "./steps.ts";

interface Retry {
  readonly attempts: number;
  readonly notBefore: number;
  readonly message: string;
}

const BACKOFF = { baseMs: 2000, maxMs: 300_000 };

/** Failed steps wait longer each time; a success of the same step forgets them. Times are monotonic milliseconds. */
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

  /** When a step may be tried; 0 where it has not failed. */
  notBefore(step: Step): number {
    return this.#retries.get(idOf(step))?.notBefore ?? 0;
  }

  /** Forgets steps that the plan no longer asks for. */
  keepOnly(steps: readonly Step[]): void {
    const wanted = new Set(steps.map(idOf));
    for (const id of this.#retries.keys()) if (!wanted.has(id)) this.#retries.delete(id);
  }

  /** The failures of a workload's steps, as sentences. @param pullKey of its image's pull; null: it needs none */
  messages(workloadId: string, pullKey: string | null): string[] {
    return [...this.#retries].flatMap(([id, retry]) =>
      id.startsWith(`workload ${workloadId} `) || id === `${pullKey} pull` ? [retry.message] : [],
    );
  }
}

function idOf(step: Step): string {
  return `${keyOf(step)} ${step.type}`;
}
