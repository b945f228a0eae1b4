/** Describes the exit code of a container. Pure. */

/** Shells and init processes exit with 128 + the signal that killed their child. */
const SIGNALLED = 128;

/** Linux signal numbers. */
const SIGNAL_WORDS: Readonly<Record<number, string>> = {
  9: "killed",
  15: "terminated",
  2: "interrupted",
  11: "crashed with a segmentation fault",
  7: "crashed with a bus error",
  4: "crashed with an illegal instruction (not supported by this CPU)",
  8: "crashed with an arithmetic error",
  6: "aborted",
};

const CODE_WORDS: Readonly<Record<number, string>> = {
  126: "command cannot be executed",
  127: "command not found",
};

export function exitWords(code: number): string {
  const signal = code - SIGNALLED;
  const ended = SIGNAL_WORDS[signal];
  if (ended !== undefined) return `${ended} (signal ${signal})`;
  const words = CODE_WORDS[code];
  return words === undefined ? `exit code ${code}` : `${words} (exit code ${code})`;
}

/** @param reason from `exitWords` or the container engine. @param times failed runs in a row. @returns such as `exited with code 1` */
export function exitedText(reason: string, times = 1): string {
  const often = times < 2 ? "" : times === 2 ? " twice in a row" : ` ${times} times in a row`;
  return reason.startsWith("exit code ")
    ? `exited with ${reason.slice("exit ".length)}${often}`
    : `exited${often}: ${reason}`;
}
