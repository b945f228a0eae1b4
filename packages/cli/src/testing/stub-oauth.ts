import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** An authorization server (RFC 8414, 8628, 6749, 7636 and 7009) with `GET /v1/me` behind its tokens. */

/** Response of the token endpoint to a poll with the device code. */
export type DeviceDecision = "approve" | "authorization_pending" | "slow_down" | "access_denied" | "expired_token";

export interface StubOAuth {
  readonly url: string;
  /** One per poll; the last one is repeated. */
  readonly decisions: DeviceDecision[];
  /** The path of every request, in order. */
  readonly paths: string[];
  readonly revoked: string[];
  /** Overrides of the metadata document. */
  readonly metadata: Record<string, unknown>;
  /** Seconds, in the device authorization response. */
  readonly timing: { interval: number; expiresIn: number; accessTokenLife: number };
  /** Number of reuses of a refresh token, each of which revokes the token family. */
  replays: number;
  /** Called before the token endpoint responds to a refresh. */
  beforeRefresh: () => Promise<void>;
  /** Invalidates all access tokens, as after a rotation of the signing key. */
  forgetAccess(): void;
  /** If set, the status of all responses. */
  failWith: number | null;
  /** Accepts this access token. */
  accept(token: string): void;
  /** Revokes the login. */
  endLogin(): void;
  close(): void;
}

export async function startStubOAuth(): Promise<StubOAuth> {
  const server = createServer((request, response) => void handle(stub, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stub: StubServer = {
    url,
    decisions: ["approve"],
    paths: [],
    revoked: [],
    metadata: {},
    timing: { interval: 0.01, expiresIn: 600, accessTokenLife: 600 },
    replays: 0,
    beforeRefresh: async () => {},
    failWith: null,
    issued: 0,
    goodAccess: new Set(),
    goodRefresh: null,
    codes: new Map(),
    forgetAccess: () => stub.goodAccess.clear(),
    accept: (token) => void stub.goodAccess.add(token),
    endLogin: () => {
      stub.goodRefresh = null;
      stub.goodAccess.clear();
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return stub;
}

interface StubServer extends StubOAuth {
  issued: number;
  readonly goodAccess: Set<string>;
  goodRefresh: string | null;
  /** Authorization code → its challenge and redirect. */
  readonly codes: Map<string, { readonly challenge: string; readonly redirectUri: string }>;
}

async function handle(stub: StubServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const form = new URLSearchParams(await text(request));
  const url = new URL(request.url ?? "/", stub.url);
  stub.paths.push(url.pathname);
  if (stub.failWith !== null) return json(response, { error: { message: "away", code: "unavailable" } }, stub.failWith);
  switch (url.pathname) {
    case "/.well-known/oauth-authorization-server":
      return json(response, metadataOf(stub));
    case "/oauth/device":
      return json(response, deviceAnswer(stub));
    case "/oauth/token":
      return token(stub, form, response);
    case "/oauth/authorize":
      return authorize(stub, url.searchParams, response);
    case "/oauth/revoke":
      stub.revoked.push(form.get("token") ?? "");
      if (form.get("token") === stub.goodRefresh) stub.endLogin();
      return void response.writeHead(200).end();
    case "/v1/me":
      return me(stub, request.headers.authorization ?? "", response);
    default:
      return json(response, { error: { message: "no such route", code: "not_found" } }, 404);
  }
}

function metadataOf({ url, metadata }: StubServer): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/oauth/authorize`,
    token_endpoint: `${url}/oauth/token`,
    revocation_endpoint: `${url}/oauth/revoke`,
    device_authorization_endpoint: `${url}/oauth/device`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
    ...metadata,
  };
}

function deviceAnswer({ url, timing }: StubServer): object {
  return {
    device_code: "the-device-code",
    user_code: "WDJB-MJHT",
    verification_uri: `${url}/device`,
    verification_uri_complete: `${url}/device?user_code=WDJB-MJHT`,
    expires_in: timing.expiresIn,
    interval: timing.interval,
  };
}

async function token(stub: StubServer, form: URLSearchParams, response: ServerResponse): Promise<void> {
  const refuse = (error: string): void => json(response, { error }, 400);
  if (form.get("client_id") !== "fairlead-cli") return refuse("invalid_client");
  switch (form.get("grant_type") ?? "") {
    case "urn:ietf:params:oauth:grant-type:device_code": {
      const decision = stub.decisions.length > 1 ? stub.decisions.shift() : stub.decisions[0];
      return decision === "approve" ? json(response, issue(stub)) : refuse(decision ?? "invalid_grant");
    }
    case "authorization_code": {
      const code = stub.codes.get(form.get("code") ?? "");
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      if (code?.challenge !== challenge || code.redirectUri !== form.get("redirect_uri"))
        return refuse("invalid_grant");
      return json(response, issue(stub));
    }
    case "refresh_token": {
      await stub.beforeRefresh();
      if (form.get("refresh_token") === stub.goodRefresh) return json(response, issue(stub));
      stub.replays += 1;
      stub.endLogin();
      return refuse("invalid_grant");
    }
    default:
      return refuse("unsupported_grant_type");
  }
}

function issue(stub: StubServer): object {
  stub.issued += 1;
  const access = `access-${stub.issued}`;
  stub.goodAccess.add(access);
  stub.goodRefresh = `refresh-${stub.issued}`;
  const { accessTokenLife } = stub.timing;
  return { access_token: access, token_type: "Bearer", expires_in: accessTokenLife, refresh_token: stub.goodRefresh };
}

/** A signed-in user who approves immediately. */
function authorize(stub: StubServer, query: URLSearchParams, response: ServerResponse): void {
  const redirectUri = query.get("redirect_uri") ?? "";
  const back = new URL(redirectUri);
  back.searchParams.set("state", query.get("state") ?? "");
  if (stub.decisions[0] === "access_denied") back.searchParams.set("error", "access_denied");
  else {
    const code = `code-${stub.codes.size}`;
    stub.codes.set(code, { challenge: query.get("code_challenge") ?? "", redirectUri });
    back.searchParams.set("code", code);
  }
  response.writeHead(302, { location: back.href }).end();
}

function me(stub: StubServer, authorization: string, response: ServerResponse): void {
  if (stub.goodAccess.has(authorization.replace("Bearer ", ""))) {
    const user = { id: "usr_1", email: "ann@example.org", name: "Ann", platformAdmin: false };
    return json(response, { ...user, projects: [{ id: "prj_1", name: "Research", role: "owner" }] });
  }
  json(response, { error: { message: "The token is good no more.", code: "invalid_credential" } }, 401);
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
