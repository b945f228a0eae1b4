/** Determines a container's user. Pure. */

const BLOCK = 512;
const MAX_UID = 0xffff_fffe;

/** @param user such as `""` or `0` for root, `1000:1000`, `app`. @returns a number, or a name to look up */
export function userPart(user: string): number | string {
  const [part = ""] = user.split(":");
  if (part === "") return 0;
  return /^\d+$/.test(part) && Number(part) <= MAX_UID ? Number(part) : part;
}

/** @param archive a tar file whose first entry is the image's `/etc/passwd`. @returns null if the name is not in it */
export function lookUpUser(name: string, archive: Uint8Array): number | null {
  const header = Buffer.from(archive.subarray(0, BLOCK));
  const size = Number.parseInt(header.toString("latin1", 124, 136), 8);
  const isFile = header[156] === 0x30 || header[156] === 0;
  const text = isFile ? Buffer.from(archive.subarray(BLOCK, BLOCK + (size || 0))).toString("utf8") : "";
  for (const line of text.split("\n")) {
    const [user, , uid = ""] = line.split(":");
    if (user === name && /^\d+$/.test(uid)) return Number(uid);
  }
  return null;
}
