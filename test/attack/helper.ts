import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

interface Report {
  /** Whether it may be begun with. */
  readonly ready: boolean;
}

/** A program of this folder in a process of its own, which reports as often as it likes. */
export class Helper<Request extends object, T extends Report> {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #heard = new Set<(report: T) => void>();
  /** Its newest report. */
  last: T | null = null;

  constructor(program: string) {
    this.name = program;
    const file = new URL(program, import.meta.url).pathname;
    this.#child = fork(file, { execArgv: ["--conditions=fairlead-source"] });
    this.#child.on("message", (report: T) => {
      this.last = report;
      for (const tell of this.#heard) tell(report);
    });
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** @throws Error where it was never started. */
  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.name} was not started`);
    return this.#child.pid;
  }

  send(request: Request): void {
    this.#child.send(request);
  }

  /** @returns the first report from now on that `find` takes. @throws Error where the process ends before. */
  hear(find: (report: T) => boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const onExit = (): void => settle(() => reject(new Error(`${this.name} has ended`)));
      const onReport = (report: T): void => {
        if (find(report)) settle(() => resolve(report));
      };
      const settle = (then: () => void): void => {
        this.#heard.delete(onReport);
        this.#child.off("exit", onExit);
        then();
      };
      this.#heard.add(onReport);
      this.#child.once("exit", onExit);
    });
  }

  async end(): Promise<void> {
    if (!this.running) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

/** For the programs: sends a report while there is somebody to hear it. */
export function tellParent<T extends Report>(report: T): void {
  if (process.connected) process.send?.(report);
}
