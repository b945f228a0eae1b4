/** An error that the user can act on; the message says how. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: number = 1;
}

/** Invalid command line. */
export class UsageError extends CliError {
  override readonly name = "UsageError";
  override readonly exitCode = 2;
}

/** Ctrl-C. The exit code is 128 + SIGINT by shell convention. */
export class Interrupted extends CliError {
  override readonly name = "Interrupted";
  override readonly exitCode = 130;

  constructor() {
    super("");
  }
}
