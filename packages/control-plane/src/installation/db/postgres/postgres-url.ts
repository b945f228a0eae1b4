/** PostgreSQL URLs in libpq's form, with one host or several: `postgres://user:password@one:5432,two:5432/database`. Pure. */

const SCHEME = /^postgres(?:ql)?:\/\//;
const MAX_HOSTS = 16;

export function isPostgresUrl(text: string): boolean {
  if (!SCHEME.test(text)) return false;
  try {
    const { length } = splitHosts(text);
    return length <= MAX_HOSTS;
  } catch {
    return false;
  }
}

/** @returns one URL per host. @throws TypeError if one is invalid. */
export function splitHosts(url: string): string[] {
  const begin = url.indexOf("://") + 3;
  const length = url.slice(begin).search(/[/?#]/);
  const end = length === -1 ? url.length : begin + length;
  const authority = url.slice(begin, end);
  const hostsAt = authority.lastIndexOf("@") + 1;
  const before = url.slice(0, begin) + authority.slice(0, hostsAt);
  const hosts = authority.slice(hostsAt).split(",");
  return hosts.map((host) => new URL(before + host + url.slice(end)).href);
}
