import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "@fairlead/protocol/values/clock";
import { generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { BROWSER, cookieOf, openSignInHost } from "../sign-in.fixture.ts";
import { CLIENT, type Endpoint, HostileIssuer, json } from "./hostile-issuer.fixture.ts";
import { OidcClient, type OidcPerson } from "./oidc-client.ts";

let issuer: HostileIssuer;
let bounds: BoundCounters;
beforeAll(async () => {
  issuer = await HostileIssuer.start();
});
afterAll(() => issuer.close());
beforeEach(() => {
  issuer.reset();
  bounds = new BoundCounters();
});

function clientOf(answerSeconds = 10): OidcClient {
  const provider = { id: "acme", name: "Acme", issuer: issuer.url, ...CLIENT };
  return new OidcClient(provider, { publicUrl: "http://127.0.0.1:1", clock: systemClock, bounds, answerSeconds });
}

async function signIn(client = clientOf(), change: Record<string, string> = {}): Promise<OidcPerson> {
  const { location, checks } = await client.begin();
  issuer.nonce = new URL(location).searchParams.get("nonce") ?? "";
  return client.complete(new URLSearchParams({ code: "c", state: checks.state, ...change }), checks);
}

const refused = { code: expect.stringMatching(/^(invalid_credential|unavailable)$/) };
/** Where claims come from at last. */
const fromUserinfo: JWTPayload = { email: undefined as never };
const ENDPOINTS: readonly Endpoint[] = ["discovery", "keys", "token", "userinfo"];

test("a well-behaved issuer signs people in", async () => {
  expect(await signIn()).toEqual({ subject: "ann", email: "ann@example.org", emailVerified: true, name: null });
  issuer.claims = fromUserinfo;
  expect(await signIn()).toMatchObject({ email: "ann@example.org" });
  expect(bounds.counts.size).toBe(0);
});

describe.each(ENDPOINTS)("a response of the endpoint %s", (endpoint) => {
  beforeEach(() => {
    if (endpoint === "userinfo") issuer.claims = fromUserinfo;
  });

  test("is read to its limit and no further", async () => {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    issuer.instead[endpoint] = (response) => {
      const chunk = Buffer.alloc(65_536, " ");
      const more = (): void => {
        while (!response.destroyed && sent < 100_000_000) {
          sent += chunk.length;
          if (!response.write(chunk)) return;
        }
      };
      response.setHeader("content-type", "application/json").on("drain", more).on("close", closed.resolve);
      more();
    };
    await expect(signIn()).rejects.toMatchObject(refused);
    await closed.promise;
    expect(sent).toBeLessThan(20_000_000);
    expect(bounds.counts.get("oidc_response")).toBe(1);
  });

  test("is not read if it declares that it is too long", async () => {
    const closed = Promise.withResolvers<void>();
    issuer.instead[endpoint] = (response) => {
      response
        .writeHead(200, { "content-type": "application/json", "content-length": "1000000" })
        .on("close", closed.resolve);
      response.write("{");
    };
    await expect(signIn()).rejects.toMatchObject(refused);
    await closed.promise;
    expect(bounds.counts.get("oidc_response")).toBe(1);
  });

  test("is not awaited beyond its timeout", async () => {
    issuer.instead[endpoint] = (response) => drip(response);
    await expect(signIn(clientOf(0.2))).rejects.toMatchObject({ code: "unavailable" });
  });

  test("is not parsed if it is nested too deeply", async () => {
    issuer.instead[endpoint] = (response) =>
      response.setHeader("content-type", "application/json").end(`{"x":${"[".repeat(65)}${"]".repeat(65)}}`);
    await expect(signIn()).rejects.toMatchObject(refused);
    expect(bounds.counts.get("oidc_response")).toBe(1);
  });

  test("is not followed if it is a redirect", async () => {
    const elsewhere = createServer((_request, response) => json(response, {})).listen(0, "127.0.0.1");
    await once(elsewhere, "listening");
    let visits = 0;
    elsewhere.on("request", () => {
      visits += 1;
    });
    const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`;
    issuer.instead[endpoint] = (response) => response.writeHead(307, { location }).end();
    await expect(signIn()).rejects.toMatchObject(refused);
    expect(visits).toBe(0);
    elsewhere.close();
  });
});

function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 10);
  response.on("close", () => clearInterval(timer));
}

test.each(["token_endpoint", "userinfo_endpoint", "jwks_uri"])(
  "the discovery document cannot direct %s to another address in our own network",
  async (name) => {
    issuer.claims = fromUserinfo;
    const inside = createServer((_request, response) => json(response, {})).listen(0, "127.0.0.2");
    await once(inside, "listening");
    let visits = 0;
    inside.on("request", () => {
      visits += 1;
    });
    const { port } = inside.address() as AddressInfo;
    for (const host of ["127.0.0.2", "localhost", "[::ffff:127.0.0.2]"]) {
      issuer.metadata = { [name]: `http://${host}:${port}/` };
      await expect(signIn()).rejects.toMatchObject(refused);
    }
    expect(visits).toBe(0);
    inside.close();
  },
);

describe("an ID token signs nobody in", () => {
  const now = Math.floor(Date.now() / 1000);
  test.each<[string, JWTPayload]>([
    ["of another issuer", { iss: "https://other.example" }],
    ["for another client", { aud: "other" }],
    ["for several clients without an authorized party", { aud: ["fairlead", "other"] }],
    ["that another client requested", { aud: ["fairlead", "other"], azp: "other" }],
    ["of another sign-in", { nonce: "another" }],
    ["without a nonce", { nonce: undefined as never }],
    ["that has expired", { exp: now - 3600 }],
    ["without an expiry", { exp: undefined as never }],
    ["without a subject", { sub: undefined as never }],
    ["with an empty subject", { sub: "" }],
    ["with an overlong subject", { sub: "a".repeat(256) }],
    ["that is not valid yet", { nbf: now + 3600 }],
  ])("%s", async (_, claims) => {
    issuer.claims = claims;
    await expect(signIn()).rejects.toMatchObject(refused);
  });

  test.each<[string, (claims: JWTPayload) => Promise<string>]>([
    ["without a signature", async (claims) => new UnsecuredJWT(claims).encode()],
    [
      "signed by the client's own secret",
      (claims) =>
        new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(new TextEncoder().encode(CLIENT.clientSecret)),
    ],
    [
      "signed by the public key as if it were a secret",
      (claims) =>
        new SignJWT(claims)
          .setProtectedHeader({ alg: "HS256", kid: "k1" })
          .sign(new TextEncoder().encode(JSON.stringify(issuer.publicJwk))),
    ],
    [
      "signed by a key that is not published",
      async (claims) =>
        new SignJWT(claims)
          .setProtectedHeader({ alg: "RS256", kid: "k1" })
          .sign((await generateKeyPair("RS256")).privateKey),
    ],
    [
      "signed by a key with an unknown ID",
      async (claims) =>
        new SignJWT(claims)
          .setProtectedHeader({ alg: "RS256", kid: "k2" })
          .sign((await generateKeyPair("RS256")).privateKey),
    ],
    ["whose signature was changed", async (claims) => `${(await issuer.signWell(claims)).slice(0, -8)}AAAAAAAA`],
  ])("%s", async (_, sign) => {
    issuer.sign = sign;
    await expect(signIn()).rejects.toMatchObject(refused);
  });

  test("with thousands of published keys, which are not even parsed", async () => {
    issuer.instead.keys = (response) =>
      json(response, { keys: Array.from({ length: 10_000 }, () => issuer.publicJwk) });
    await expect(signIn()).rejects.toMatchObject(refused);
    expect(bounds.counts.get("oidc_response")).toBe(1);
  });

  test("if the userinfo endpoint describes another person", async () => {
    issuer.claims = fromUserinfo;
    issuer.instead.userinfo = (response) =>
      json(response, { sub: "bob", email: "bob@example.org", email_verified: true });
    await expect(signIn()).rejects.toMatchObject(refused);
  });
});

test("an authorization response from another issuer is rejected (RFC 9207)", async () => {
  issuer.metadata = { authorization_response_iss_parameter_supported: true };
  expect(await signIn(clientOf(), { iss: issuer.url })).toMatchObject({ subject: "ann" });
  await expect(signIn(clientOf(), { iss: "https://other.example" })).rejects.toMatchObject(refused);
  await expect(signIn(clientOf())).rejects.toMatchObject(refused);
});

test("simultaneous sign-ins fetch the discovery document once", async () => {
  const client = clientOf();
  await Promise.all(Array.from({ length: 20 }, () => client.begin()));
  expect(issuer.asked).toEqual(["discovery"]);
});

test("a provider that does not respond blocks a limited number of sign-ins; others are to retry later", async () => {
  const client = clientOf();
  const { checks } = await client.begin();
  const held: ServerResponse[] = [];
  issuer.instead.token = (response) => void held.push(response);
  const query = new URLSearchParams({ code: "c", state: checks.state });
  const waiting = Array.from({ length: 32 }, () => client.complete(query, checks));
  await expect(client.complete(query, checks)).rejects.toMatchObject({ code: "overloaded", retryAfterSeconds: 10 });
  expect(bounds.counts.get("oidc_sign_ins")).toBe(1);
  await expect.poll(() => held.length).toBe(32);
  for (const response of held) response.destroy();
  for (const outcome of await Promise.allSettled(waiting)) expect(outcome.status).toBe("rejected");
  delete issuer.instead.token;
  expect(await signIn(client)).toMatchObject({ subject: "ann" });
});

test("a subject of one issuer is unknown to another, and its address takes over no account there", async () => {
  const other = await HostileIssuer.start();
  const oidc = [issuer, other].map(({ url }, at) => ({ id: `p${at}`, name: `P${at}`, issuer: url, ...CLIENT }));
  const host = await openSignInHost(openMemoryStore, { oidc });
  await host.addUser("first@example.org");
  const arrive = async (providerId: string, at: HostileIssuer, email: string): Promise<string> => {
    const { location, setCookies } = await host.oidc.begin({ providerId, returnTo: "/", linkTo: null });
    const asked = new URL(location).searchParams;
    at.nonce = asked.get("nonce") ?? "";
    at.claims = { email };
    const query = new URLSearchParams({ code: "c", state: asked.get("state") ?? "" });
    const cookies = cookieOf({ setCookies });
    return (await host.oidc.complete({ providerId, query, cookies, caller: BROWSER })).session.userId;
  };
  const ann = await arrive("p0", issuer, "ann@example.org");
  await expect(arrive("p1", other, "ann@example.org")).rejects.toMatchObject({ code: "permission_denied" });
  await expect(arrive("p1", other, "first@example.org")).rejects.toMatchObject({ code: "permission_denied" });
  expect(await arrive("p1", other, "else@example.org")).not.toBe(ann);
  expect(await arrive("p0", issuer, "changed@example.org")).toBe(ann);
  await host.close();
  other.close();
});
