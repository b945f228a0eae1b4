import { readFileSync } from "node:fs";
import { trustAlso } from "@fairlead/wire/trust";
import { StartError } from "../process/start-error.ts";
import type { ProxyConfig } from "./proxy-settings.ts";

/** Every outgoing connection of this process trusts those of `proxy.caFile` from now on. @throws StartError */
export function trustAuthorities({ caFile }: Pick<ProxyConfig, "caFile">): void {
  if (caFile === null) return;
  try {
    trustAlso(readFileSync(caFile, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`proxy.caFile: ${caFile} cannot be used: ${reason}`);
  }
}
