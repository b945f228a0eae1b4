/** Searches in bytes without parsing them. */

/** @returns a test for bytes that hold at least one of these texts. */
export function holdsAnyOf(texts: readonly string[]): (bytes: Buffer) => boolean {
  const signs = texts.map((text) => Buffer.from(text));
  return (bytes) => {
    for (const sign of signs) if (bytes.includes(sign)) return true;
    return false;
  };
}

/** @returns the byte's index, or the length if there is none. */
export function indexOrEnd(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}
