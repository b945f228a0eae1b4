/** Renders requests in HTTP/1.1 (RFC 9112). Pure. */

/** A header that no request may hold. */
export class HeaderRefused extends Error {
  override readonly name = "HeaderRefused";
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Nothing that ends a line, and nothing that one byte cannot say. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Callers may send it unescaped. */
const TARGET = /^\/[\x21-\x7e\x80-\xff]*$/;

/** @param headers a list is several of this name. @throws HeaderRefused */
export function headerLines(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  except?: ReadonlySet<string>,
): string {
  let lines = "";
  for (const name in headers) {
    if (except?.has(name)) continue;
    const value = headers[name];
    if (typeof value === "object") for (const one of value) lines += headerLine(name, one);
    else if (value !== undefined) lines += headerLine(name, value);
  }
  return lines;
}

function headerLine(name: string, value: string): string {
  if (!NAME.test(name) || !VALUE.test(value)) throw new HeaderRefused(`the header ${JSON.stringify(name)} is refused`);
  return `${name}: ${value}\r\n`;
}

/** @param target path and query. @throws HeaderRefused */
export function requestLine(method: string, target: string): string {
  if (!NAME.test(method) || !TARGET.test(target)) throw new HeaderRefused("the request's path is refused");
  return `${method} ${target} HTTP/1.1\r\n`;
}
