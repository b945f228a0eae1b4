/** When a disk is too full, and how much has to go. Pure. */

export interface DiskSpace {
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** Clean-up begins at the upper mark and ends at the lower one (design §6). */
const HIGH_PERCENT = 85;
const LOW_PERCENT = 80;

const MEBIBYTE = 1024 * 1024;
const FLOOR_BYTES = 1024 * MEBIBYTE;
const FLOOR_PERCENT = 5;

/** What no pull may leave less than: 1 GiB, on a small disk 5 % of it. */
export function floorOf({ totalBytes }: DiskSpace): number {
  return Math.min(FLOOR_BYTES, (totalBytes * FLOOR_PERCENT) / 100);
}

/** @returns why so many more bytes find no room, or null. */
export function roomProblem(space: DiskSpace, pendingBytes: number): string | null {
  const floor = floorOf(space);
  if (space.freeBytes - pendingBytes >= floor) return null;
  const coming = pendingBytes > 0 ? ` and ${sizeText(pendingBytes)} are still to come` : "";
  return `too little disk space: ${sizeText(space.freeBytes)} are free${coming}, and ${sizeText(floor)} must stay free`;
}

export function usedPercent({ totalBytes, freeBytes }: DiskSpace): number {
  return totalBytes === 0 ? 0 : (100 * (totalBytes - freeBytes)) / totalBytes;
}

/** Under pressure from the upper mark on, until the lower one is reached. */
export function isUnderPressure(space: DiskSpace, before: boolean): boolean {
  return usedPercent(space) >= (before ? LOW_PERCENT : HIGH_PERCENT);
}

/** @returns the bytes that have to go until the lower mark is reached; 0 under the upper one. */
export function bytesToFree(space: DiskSpace): number {
  return isUnderPressure(space, false) ? bytesAboveLowMark(space) : 0;
}

/** @returns the bytes above the lower mark. */
export function bytesAboveLowMark({ totalBytes, freeBytes }: DiskSpace): number {
  return Math.max(0, Math.ceil(totalBytes - freeBytes - (totalBytes * LOW_PERCENT) / 100));
}

export function sizeText(bytes: number): string {
  const megabytes = bytes / MEBIBYTE;
  return megabytes >= 1024 ? `${(megabytes / 1024).toFixed(1)} GiB` : `${Math.round(megabytes)} MiB`;
}
