/** The subset of tar (POSIX ustar) that a backup needs, so that `tar xzf` can read it. Pure. */

export const TAR_BLOCK = 512;
/** Two empty blocks end an archive. */
export const TAR_END = Buffer.alloc(2 * TAR_BLOCK);

export interface TarEntry {
  /** At most 100 bytes. */
  readonly name: string;
  readonly bytes: number;
}

const SIZE_AT = 124;
const SIZE_LENGTH = 12;
const CHECKSUM_AT = 148;
const CHECKSUM_LENGTH = 8;
/** Maximum of twelve octal bytes; larger values use GNU's binary form. */
const MAX_OCTAL_SIZE = 0o77777777777;
const BINARY_SIZE = 0x80;

/** @param seconds modification time, Unix seconds. */
export function tarHeader({ name, bytes }: TarEntry, seconds: number): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  header.write(name, 0, 100);
  header.write("0000600\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  writeSize(header, bytes);
  header.write(`${Math.floor(seconds).toString(8).padStart(11, "0")}\0`, 136);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  header.write(`${checksum(header).toString(8).padStart(6, "0")}\0 `, CHECKSUM_AT);
  return header;
}

/** @returns null at the end of the archive. @throws Error for an invalid header. */
export function parseTarHeader(header: Buffer): TarEntry | null {
  if (header.every((byte) => byte === 0)) return null;
  const stated = Number.parseInt(header.toString("latin1", CHECKSUM_AT, CHECKSUM_AT + CHECKSUM_LENGTH), 8);
  if (stated !== checksum(header)) throw new Error("a header of the archive is damaged");
  const name = header.toString("utf8", 0, 100);
  return { name: name.slice(0, name.includes("\0") ? name.indexOf("\0") : 100), bytes: readSize(header) };
}

/** Padding after this many bytes of content. */
export function tarPadding(bytes: number): number {
  return (TAR_BLOCK - (bytes % TAR_BLOCK)) % TAR_BLOCK;
}

function writeSize(header: Buffer, bytes: number): void {
  if (bytes <= MAX_OCTAL_SIZE) {
    header.write(`${bytes.toString(8).padStart(11, "0")}\0`, SIZE_AT);
    return;
  }
  header[SIZE_AT] = BINARY_SIZE;
  header.writeBigUInt64BE(BigInt(bytes), SIZE_AT + SIZE_LENGTH - 8);
}

function readSize(header: Buffer): number {
  if (((header[SIZE_AT] ?? 0) & BINARY_SIZE) !== 0) return Number(header.readBigUInt64BE(SIZE_AT + SIZE_LENGTH - 8));
  const bytes = Number.parseInt(header.toString("latin1", SIZE_AT, SIZE_AT + SIZE_LENGTH), 8);
  if (!Number.isSafeInteger(bytes)) throw new Error("a header of the archive has no size");
  return bytes;
}

/** The sum of the header's bytes, with the checksum field as spaces. */
function checksum(header: Buffer): number {
  let sum = 0;
  for (const [at, byte] of header.entries()) {
    sum += at >= CHECKSUM_AT && at < CHECKSUM_AT + CHECKSUM_LENGTH ? 0x20 : byte;
  }
  return sum;
}
