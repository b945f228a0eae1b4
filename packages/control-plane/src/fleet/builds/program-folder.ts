import { fileURLToPath } from "node:url";
import { IS_BUILD } from "@fairlead/protocol/values/build-info";

/** The program's folder: that of its version, or the checkout. Bundled files have the same relative paths in both. */
export function programFolder(): string {
  return fileURLToPath(new URL(IS_BUILD ? ".." : "../../../../..", import.meta.url));
}
