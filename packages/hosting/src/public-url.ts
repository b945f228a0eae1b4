/** Public URLs of this server. They may have a path, which the reverse proxy strips from each request. Pure. */

/** @returns "" or a path such as `/fairlead` that prefixes every path sent to browsers */
export function publicPath(publicUrl: string): string {
  const { pathname } = new URL(publicUrl);
  return pathname === "/" ? "" : pathname;
}

export interface CookieScope {
  /** Prefix of the cookie's name; browsers enforce its guarantees. */
  readonly prefix: "__Host-" | "__Secure-" | "";
  readonly path: string;
  readonly secure: boolean;
}

/** `__Host-` requires the path `/`, which would send our cookies to other services on the same host. */
export function cookieScope(publicUrl: string): CookieScope {
  const path = publicPath(publicUrl);
  const secure = publicUrl.startsWith("https:");
  if (!secure) return { prefix: "", path: path || "/", secure };
  return path === "" ? { prefix: "__Host-", path: "/", secure } : { prefix: "__Secure-", path, secure };
}

/** @returns what is wrong with a public URL, or null. @param text a URL */
export function publicAddressProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return null;
  if (url.username !== "" || url.password !== "" || text.includes("@")) return "must not contain a user or password";
  if (/[?#]/.test(text)) return "must not contain a query or fragment";
  if (text.endsWith("/")) return "must not end with a slash";
  const [, , , ...segments] = text.split("/");
  const isPlain = segments.every((segment) => /^[\w.~-]+$/.test(segment) && !/^\.\.?$/.test(segment));
  return isPlain ? null : "must have a path of letters, digits and - . _ ~ only, without empty or dot segments";
}
