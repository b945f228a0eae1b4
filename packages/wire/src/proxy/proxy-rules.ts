import { BlockList, isIP } from "node:net";
import { type HostMatcher, parseNoProxy } from "./no-proxy.ts";

/** Which HTTP proxy a connection goes through, if any. */

export interface ProxySettings {
  /** For `https:` and `wss:` addresses; a URL, or `host:port`. */
  readonly https?: string | undefined;
  /** For `http:` and `ws:` addresses. */
  readonly http?: string | undefined;
  readonly noProxy?: string | undefined;
}

export class ProxyServer {
  /** `http://proxy.example.com:3128`, without user and password: for connections, logs and messages alike. */
  readonly url: string;
  readonly #authorization: string | null;

  constructor(url: string, authorization: string | null) {
    this.url = url;
    this.#authorization = authorization;
  }

  /** The header for its user and password, or null. A secret: no property, so that nothing that prints objects shows it. */
  get authorization(): string | null {
    return this.#authorization;
  }
}

/** Where a connection goes, as of a URL. */
export interface Destination {
  readonly protocol: string;
  /** IPv6 with or without brackets. */
  readonly hostname: string;
  /** "" for the protocol's own. */
  readonly port: string;
}

/** The message never repeats the value, which may hold a password. */
export class InvalidProxy extends Error {
  override readonly name = "InvalidProxy";
  readonly setting: "https" | "http";

  constructor(setting: "https" | "http") {
    super("must be the URL of an HTTP proxy, such as http://user:password@proxy.example.com:3128");
    this.setting = setting;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** As curl reads them: the lower-case name wins, and an empty value is none. */
export function proxyEnvironment(env: Environment): ProxySettings {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  return { https: read("HTTPS_PROXY"), http: read("HTTP_PROXY"), noProxy: read("NO_PROXY") };
}

export class ProxyRules {
  readonly https: ProxyServer | null;
  readonly http: ProxyServer | null;
  readonly #isExcluded: HostMatcher;

  /** @throws InvalidProxy */
  constructor({ https, http, noProxy = "" }: ProxySettings) {
    this.https = https === undefined ? null : parseProxy("https", https);
    this.http = http === undefined ? null : parseProxy("http", http);
    this.#isExcluded = parseNoProxy(noProxy);
  }

  /** @returns null for a direct connection. Loopback is never reached through a proxy. */
  find({ protocol, hostname, port }: Destination): ProxyServer | null {
    const isSecure = protocol === "https:" || protocol === "wss:";
    const proxy = isSecure ? this.https : this.http;
    if (proxy === null) return null;
    const host = bareHost(hostname);
    return isLoopback(host) || this.#isExcluded(host, Number(port) || (isSecure ? 443 : 80)) ? null : proxy;
  }
}

export const NO_PROXIES = new ProxyRules({});

/** Lower-case, without brackets and without the dot of a complete name. */
export function bareHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");
// Connections to these lead to this machine as well.
LOOPBACK.addAddress("0.0.0.0", "ipv4");
LOOPBACK.addAddress("::", "ipv6");

function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === "localhost" || host.endsWith(".localhost");
  return LOOPBACK.check(host, isIP(host) === 6 ? "ipv6" : "ipv4");
}

/** @throws InvalidProxy */
function parseProxy(setting: "https" | "http", text: string): ProxyServer {
  const withScheme = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") throw new InvalidProxy(setting);
  const { protocol, host, username, password } = url;
  const authorization = username === "" && password === "" ? null : basic(setting, `${username}:${password}`);
  return new ProxyServer(`${protocol}//${host}`, authorization);
}

function basic(setting: "https" | "http", credentials: string): string {
  try {
    return `Basic ${Buffer.from(decodeURIComponent(credentials)).toString("base64")}`;
  } catch {
    // A % that begins no escape.
    throw new InvalidProxy(setting);
  }
}
