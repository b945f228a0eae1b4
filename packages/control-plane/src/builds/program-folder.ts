import { fileURLToPath } from "node:url";
import { IS_BUILD } from "@fairlead/protocol/build-info";

/** Where this program lies: the folder of its version, or the checkout. What it brings along lies at the same places in both. */
export function programFolder(): string {
  return fileURLToPath(new URL(IS_BUILD ? ".." : "../../../..", import.meta.url));
}
