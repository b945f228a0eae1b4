import { readFileSync } from "node:fs";
import { ProxyFailed } from "@fairlead/wire/proxy/proxy-connect";
import { InvalidProxy, ProxyRules, proxyEnvironment } from "@fairlead/wire/proxy/proxy-rules";
import { trustAlso } from "@fairlead/wire/trust";
import { CliError, UsageError } from "../cli-error.ts";
import type { Environment } from "../config.ts";

/** Proxies and certificate authorities for outgoing connections. */

const CA_FILE = "FAIRLEAD_CA_FILE";

/** @throws UsageError that names the variable but not its value */
export function proxiesOf(env: Environment): ProxyRules {
  try {
    return new ProxyRules(proxyEnvironment(env));
  } catch (error) {
    if (!(error instanceof InvalidProxy)) throw error;
    throw new UsageError(`${error.setting.toUpperCase()}_PROXY ${error.message}`);
  }
}

/** Applies to all later calls of this process. @throws CliError, UsageError */
export async function prepareOutgoing(env: Environment): Promise<void> {
  const path = env[CA_FILE];
  if (path) trustFile(path);
  const proxies = proxiesOf(env);
  if (proxies.https === null && proxies.http === null) return;
  // Loaded on demand: it takes 100 ms.
  const { proxyFetch } = await import("./proxy-fetch.ts");
  proxyFetch(proxies);
}

function trustFile(path: string): void {
  try {
    trustAlso(readFileSync(path, "utf8"));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${CA_FILE}: cannot use ${path}: ${reason}`, { cause });
  }
}

/** The proxy's error message, if a proxy caused the error. */
export function proxyFailure(error: unknown): string | null {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ProxyFailed) return `${at.message.charAt(0).toUpperCase()}${at.message.slice(1)}.`;
  }
  return null;
}
