/**
 * The exit codes of `fairlead-daemon`. 2 and 5 tell systemd not to start it again (`RestartPreventExitStatus`); 6, that another version
 * takes over.
 */
export const EXIT = { ok: 0, fault: 1, usage: 2, locked: 3, refused: 5, updated: 6 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Why the daemon cannot run, in words for the person who started it. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
