import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair } from "jose";
import { vi } from "vitest";

/** Claims of the person who signs in at the provider next. */
export interface Person {
  readonly sub: string;
  readonly email?: string | undefined;
  readonly email_verified?: boolean | string | undefined;
  readonly name?: string | undefined;
}

/** As far as we use it; the package brings no types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ params: Record<string, string>; prompt: { name: string }; session?: { accountId: string } }>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  Grant: new (grant: {
    accountId: string;
    clientId: string;
  }) => {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  };
}
type ProviderClass = new (issuer: string, configuration: object) => Provider;

/** A real OIDC server on a port of its own, whose people sign in by looking at it. */
export class RealProvider {
  readonly #http: Server;
  #provider: Provider | undefined;
  /** As providers do it, one key serves on when the configuration changes. */
  #key: GenerateKeyPairResult | undefined;
  person: Person = { sub: "ann" };

  constructor() {
    this.#http = createServer((request, response) => {
      if (request.url?.startsWith("/interaction/")) void this.#interact(request, response);
      else this.#provider?.callback()(request, response);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => void this.#http.listen(port, "127.0.0.1", resolve));
  }

  /** @param redirectUris of the client `fairlead`. @param inIdToken whether claims of scopes are in the ID token, or at userinfo alone. */
  async serve(redirectUris: readonly string[], inIdToken = false): Promise<void> {
    // @ts-expect-error: the package brings no types.
    const { default: Class } = (await import("oidc-provider")) as { default: ProviderClass };
    this.#key ??= await generateKeyPair("RS256", { extractable: true });
    const { privateKey } = this.#key;
    // It tells developers on the console what to set in production.
    const muted = (["info", "warn"] as const).map((level) => vi.spyOn(console, level).mockReturnValue());
    this.#provider = new Class(this.url, {
      clients: [{ client_id: "fairlead", client_secret: "a secret & more", redirect_uris: redirectUris }],
      cookies: { keys: ["test"] },
      claims: { email: ["email", "email_verified"], profile: ["name"] },
      conformIdTokenClaims: !inIdToken,
      features: { devInteractions: { enabled: false } },
      findAccount: async (_: unknown, sub: string) => ({ accountId: sub, claims: async () => ({ ...this.person }) }),
      interactions: { url: (_: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
      jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig" }] },
      ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    });
    for (const spy of muted) spy.mockRestore();
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise<void>((resolve) => void this.#http.close(() => resolve()));
  }

  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#provider;
    if (!provider) throw new Error("nothing is served yet");
    const { params, prompt, session } = await provider.interactionDetails(request, response);
    const { sub: accountId } = this.person;
    if (prompt.name === "login") {
      await provider.interactionFinished(request, response, { login: { accountId } });
      return;
    }
    const grant = new provider.Grant({
      accountId: session?.accountId ?? accountId,
      clientId: params["client_id"] ?? "",
    });
    grant.addOIDCScope("openid email profile");
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
  }
}

/** A browser, as far as redirects and cookies go. @returns where it would leave the provider for. */
export async function walk(start: string, until: string): Promise<URL> {
  const jar = new Map<string, string>();
  let location = start;
  while (!location.startsWith(until)) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(location, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      jar.set(name, value);
    }
    const next = response.headers.get("location");
    if (next === null) throw new Error(`${location} answered ${response.status}: ${await response.text()}`);
    location = new URL(next, location).href;
  }
  return new URL(location);
}
