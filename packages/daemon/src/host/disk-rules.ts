/** Decides when the disk is too full and how much to free. Pure. */

export interface DiskSpace {
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** Clean-up starts at the upper mark and stops at the lower one. */
const HIGH_PERCENT = 85;
const LOW_PERCENT = 80;

const MEBIBYTE = 1024 * 1024;
const FLOOR_BYTES = 1024 * MEBIBYTE;
const FLOOR_PERCENT = 5;

/** Minimum free space after a pull: 1 GiB, or 5 % of a small disk. */
export function floorOf({ totalBytes }: DiskSpace): number {
  return Math.min(FLOOR_BYTES, (totalBytes * FLOOR_PERCENT) / 100);
}

/** @returns why the pending bytes do not fit, or null. */
export function roomProblem(space: DiskSpace, pendingBytes: number): string | null {
  const floor = floorOf(space);
  if (space.freeBytes - pendingBytes >= floor) return null;
  const coming = pendingBytes > 0 ? `, ${sizeText(pendingBytes)} pending` : "";
  return `too little disk space: ${sizeText(space.freeBytes)} free${coming}, ${sizeText(floor)} must stay free`;
}

export function usedPercent({ totalBytes, freeBytes }: DiskSpace): number {
  return totalBytes === 0 ? 0 : (100 * (totalBytes - freeBytes)) / totalBytes;
}

/** Under pressure from the upper mark until usage drops to the lower one. */
export function isUnderPressure(space: DiskSpace, before: boolean): boolean {
  return usedPercent(space) >= (before ? LOW_PERCENT : HIGH_PERCENT);
}

/** @returns the bytes to free to reach the lower mark; 0 below the upper mark. */
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
