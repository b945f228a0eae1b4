import { withoutTrailing } from "./text.ts";

/** Appends `path`, which starts with a slash, to a base URL and keeps the base's own path, which `new URL(path, base)` would drop. */
export function urlBelow(base: string, path: string): string {
  return withoutTrailing(base, "/") + path;
}
