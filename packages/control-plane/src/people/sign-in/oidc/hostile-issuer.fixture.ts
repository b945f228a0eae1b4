import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWTPayload, SignJWT } from "jose";

export type Endpoint = "discovery" | "keys" | "token" | "userinfo";
type PrivateKey = GenerateKeyPairResult["privateKey"];
type Handler = (response: ServerResponse, request: IncomingMessage) => void;

const PATHS: Readonly<Record<string, Endpoint>> = {
  "/.well-known/openid-configuration": "discovery",
  "/keys": "keys",
  "/token": "token",
  "/userinfo": "userinfo",
};
export const CLIENT = { clientId: "fairlead", clientSecret: "a secret of at least thirty-two bytes" };

/** An OIDC provider that says what its test wants, and does well what the test does not change. */
export class HostileIssuer {
  readonly #server: Server;
  readonly #key: PrivateKey;
  readonly publicJwk: Record<string, unknown>;
  /** In place of what the endpoint does well. */
  readonly instead: Partial<Record<Endpoint, Handler>> = {};
  /** Over what the discovery document says. */
  metadata: Record<string, unknown> = {};
  /** Over the claims of a good ID token. */
  claims: JWTPayload = {};
  /** Makes another ID token of the good claims. */
  sign: ((claims: JWTPayload) => Promise<string>) | null = null;
  nonce = "";
  readonly asked: Endpoint[] = [];

  private constructor(server: Server, key: PrivateKey, publicJwk: Record<string, unknown>) {
    this.#server = server;
    this.#key = key;
    this.publicJwk = publicJwk;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<HostileIssuer> {
    const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "RS256", use: "sig" };
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new HostileIssuer(server, privateKey, jwk);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** As after a start. */
  reset(): void {
    for (const endpoint of Object.values(PATHS)) delete this.instead[endpoint];
    this.metadata = {};
    this.claims = {};
    this.sign = null;
    this.asked.length = 0;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  signWell(claims: JWTPayload): Promise<string> {
    return new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "k1" }).sign(this.#key);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const endpoint = PATHS[request.url ?? ""];
    if (endpoint === undefined) {
      response.writeHead(404).end();
      return;
    }
    this.asked.push(endpoint);
    const instead = this.instead[endpoint];
    if (instead) instead(response, request);
    else json(response, await this.#well(endpoint));
  }

  async #well(endpoint: Endpoint): Promise<unknown> {
    if (endpoint === "keys") return { keys: [this.publicJwk] };
    if (endpoint === "userinfo") return { sub: "ann", email: "ann@example.org", email_verified: true };
    if (endpoint === "discovery") {
      return {
        issuer: this.url,
        authorization_endpoint: `${this.url}/authorize`,
        token_endpoint: `${this.url}/token`,
        userinfo_endpoint: `${this.url}/userinfo`,
        jwks_uri: `${this.url}/keys`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
        ...this.metadata,
      };
    }
    const now = Math.floor(Date.now() / 1000);
    const good = { iss: this.url, sub: "ann", aud: CLIENT.clientId, iat: now, exp: now + 60, nonce: this.nonce };
    const claims = { ...good, email: "ann@example.org", email_verified: true, ...this.claims };
    const id_token = await (this.sign ?? ((given: JWTPayload) => this.signWell(given)))(claims);
    return { access_token: "token", token_type: "Bearer", expires_in: 60, id_token };
  }
}

export function json(response: ServerResponse, body: unknown): void {
  response.setHeader("content-type", "application/json").end(JSON.stringify(body));
}
