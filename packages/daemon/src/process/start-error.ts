/**
 * Exit codes of `fairlead-daemon`. After 2 and 5, systemd does not restart it (`RestartPreventExitStatus`); 6 means that another version
 * takes over.
 */
export const EXIT = { ok: 0, fault: 1, usage: 2, locked: 3, refused: 5, updated: 6 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Why the daemon cannot run; the message is for the operator. */
export class DaemonStartError extends Error {
  override readonly name = "StartError";
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
