import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startProjectRemover } from "./project-remover.ts";

const LATER_MS = 10_000;

/** Deletions as they wait, and who works on them. */
class Deletions {
  readonly waitingIds = new Set<string>();
  readonly begun: string[] = [];
  readonly done: string[] = [];
  /** Projects whose deletion fails. */
  readonly broken = new Set<string>();
  /** Projects whose deletion goes on until it is stopped. */
  readonly slow = new Set<string>();
  away = false;
  #listener: () => void = () => undefined;

  ask(id: string): void {
    this.waitingIds.add(id);
    this.#listener();
  }

  onRequest(listener: () => void): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = () => undefined;
    };
  }

  async waiting(): Promise<readonly string[]> {
    if (this.away) throw new Error("the store is away");
    return [...this.waitingIds];
  }

  async finish(id: string, stop: AbortSignal): Promise<void> {
    this.begun.push(id);
    if (this.broken.has(id)) throw new Error("a step failed");
    if (this.slow.has(id)) {
      await new Promise((_resolve, reject) => {
        stop.addEventListener("abort", () => reject(new Error("stopped")));
      });
    }
    this.waitingIds.delete(id);
    this.done.push(id);
  }
}

describe("the remover of projects", () => {
  let deletions: Deletions;
  let stop: () => Promise<void>;
  const begin = (): void => {
    stop = startProjectRemover(deletions, pino({ level: "silent" }));
  };

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    deletions = new Deletions();
  });
  afterEach(async () => {
    await stop();
    vi.useRealTimers();
  });

  test("resumes what the last run of the server left", async () => {
    deletions.waitingIds.add("prj_1");
    begin();
    await vi.waitFor(() => expect(deletions.done).toEqual(["prj_1"]));
  });

  test("starts immediately on request, in parallel with running work, and works on each project once", async () => {
    deletions.slow.add("prj_slow");
    begin();
    deletions.ask("prj_slow");
    deletions.ask("prj_1");
    deletions.ask("prj_1");
    await vi.waitFor(() => expect(deletions.done).toEqual(["prj_1"]));
    expect(deletions.begun).toEqual(["prj_slow", "prj_1"]);
  });

  test("retries what failed, and looks again after the store was unreachable", async () => {
    deletions.broken.add("prj_1");
    begin();
    deletions.ask("prj_1");
    await vi.waitFor(() => expect(deletions.begun).toEqual(["prj_1"]));
    deletions.broken.clear();
    deletions.away = true;
    await vi.advanceTimersByTimeAsync(LATER_MS);
    deletions.away = false;
    await vi.advanceTimersByTimeAsync(LATER_MS);
    await vi.waitFor(() => expect(deletions.done).toEqual(["prj_1"]));
  });

  test("finishes its current work when it is stopped, and starts nothing new", async () => {
    deletions.slow.add("prj_slow");
    begin();
    deletions.ask("prj_slow");
    await vi.waitFor(() => expect(deletions.begun).toEqual(["prj_slow"]));
    await stop();
    deletions.ask("prj_1");
    await vi.advanceTimersByTimeAsync(LATER_MS);
    expect(deletions.begun).toEqual(["prj_slow"]);
    expect([...deletions.waitingIds]).toEqual(["prj_slow", "prj_1"]);
  });
});
