/** A failure that the person at the terminal can act on. The message says what to do. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: number = 1;
}

/** The command line itself is wrong. */
export class UsageError extends CliError {
  override readonly name = "UsageError";
  override readonly exitCode = 2;
}

/** The person pressed Ctrl-C. The shell's convention: 128 + SIGINT. */
export class Interrupted extends CliError {
  override readonly name = "Interrupted";
  override readonly exitCode = 130;

  constructor() {
    super("");
  }
}
