import { fromJson } from "@fairlead/protocol/values/json-setting";
import { InvalidProxy, ProxyRules, proxyEnvironment } from "@fairlead/wire/proxy/proxy-rules";
import { z } from "zod";

/** The settings `proxy`: how this server reaches providers, OIDC issuers and clouds. */

const PROXY = "As `http://user:password@proxy.example.com:3128`, or `https://` if the proxy requires TLS.";

export const proxySettings = z
  .strictObject({
    https: z
      .string()
      .min(1)
      .optional()
      .describe(
        `HTTP proxy for https requests to providers, OIDC issuers and clouds. ${PROXY} Default: \`HTTPS_PROXY\` from the environment.`,
      ),
    http: z
      .string()
      .min(1)
      .optional()
      .describe("HTTP proxy for http requests. Default: `HTTP_PROXY` from the environment."),
    noProxy: z
      .string()
      .optional()
      .describe(
        "Hosts to connect to directly, separated by commas: `example.com` (with its subdomains), `*.example.com`, an IP address or a CIDR " +
          "range, each with or without `:port`; `*` for all. Loopback is always included. Default: `NO_PROXY` from the environment.",
      ),
    trustResolution: fromJson(z.boolean())
      .default(false)
      .describe(
        "Let the proxy resolve the host names of projects' own providers. When false, this server resolves them, rejects private addresses and makes the " +
          "proxy connect to the address. When true, the proxy must reject addresses inside your network.",
      ),
    caFile: z
      .string()
      .min(1)
      .optional()
      .describe(
        "PEM file of additional certificate authorities for all outgoing connections, such as those of a proxy that inspects TLS.",
      ),
  })
  .prefault({});
type ProxySettingsInput = z.output<typeof proxySettings>;

export interface ProxyConfig {
  readonly rules: ProxyRules;
  readonly trustResolution: boolean;
  readonly caFile: string | null;
}

/** Unset values come from the environment. @returns null after errors, which never contain a value */
export function completeProxy(
  { caFile, trustResolution, ...settings }: ProxySettingsInput,
  env: Readonly<Record<string, string | undefined>>,
): { readonly config: ProxyConfig | null; readonly mistakes: readonly { path: string; message: string }[] } {
  const inherited = proxyEnvironment(env);
  const given = { ...inherited, ...settings };
  try {
    return { config: { rules: new ProxyRules(given), trustResolution, caFile: caFile ?? null }, mistakes: [] };
  } catch (error) {
    if (!(error instanceof InvalidProxy)) throw error;
    const { setting, message } = error;
    const path = settings[setting] === undefined ? `${setting.toUpperCase()}_PROXY` : `proxy.${setting}`;
    return { config: null, mistakes: [{ path, message }] };
  }
}
