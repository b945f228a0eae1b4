import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Admission } from "@fairlead/hosting/requests/admission";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import { DomainError } from "@fairlead/protocol/errors";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import type { Authenticate } from "../../access/auth/authenticate.ts";
import { isPrincipalOf, type Principal } from "../../access/auth/principal.ts";
import { asUser } from "../../testing.fixture.ts";
import { RateLimit } from "../limits/rate-limit.ts";
import { limitFailures } from "../limits/rate-limit-guards.ts";
import { createPlatformHost, MAX_ANONYMOUS_BODY_BYTES, type PlatformApp } from "../platform-host.ts";
import type { BodyRoom } from "./body-parser.ts";
import { requirePrincipal } from "./require-principal.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const FAILURES = 5;

const authenticate: Authenticate = async (header, kinds) => {
  const principal: Principal = asUser((header ?? "").slice("Bearer ".length));
  if (isPrincipalOf(principal, kinds) && principal.userId.startsWith("usr_")) return principal;
  throw new DomainError("invalid_credential", "Send a token.");
};

let app: PlatformApp;
let bodies: BodyRoom;
let full: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  full = 0;
  const limits = { maxCallsInFlight: 100, maxBufferedBytes: 4 * MIB, ownerShare: 0.5 };
  bodies = {
    admission: new Admission(limits, { reached: () => full++ }),
    pace: new UploadPace({ bytesPerSecond: 16 * KIB, onSlow: () => undefined }),
  };
  const body = z.object({ value: z.unknown() });
  app = createPlatformHost({
    ids: countingIds(),
    log: pino({ level: "silent" }),
    authenticate,
    bodies,
    routes: (scope) => {
      const failures = new RateLimit({ what: "failures", limit: FAILURES, seconds: 60 });
      scope.post("/open", { onRequest: limitFailures(failures), schema: { body } }, async () => ({}));
      scope.post("/large", { bodyLimit: 10 * MIB, schema: { body } }, async () => ({}));
      scope.post("/mine", { onRequest: requirePrincipal("user"), schema: { body } }, async () => ({}));
    },
    health: { ready: async () => undefined, publicJwks: () => ({ keys: [] }) },
    requests: new RequestTally(),
    document: { publicUrl: "http://127.0.0.1:8080", inferencePaths: {} },
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await app.close();
});

const port = (): number => (app.server.address() as AddressInfo).port;

async function post(path: string, body: string, user?: string): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${port()}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(user === undefined ? {} : { authorization: `Bearer ${user}` }) },
    body,
  });
  const { error } = (await response.json()) as { error?: { code: string } };
  return [response.status, error?.code ?? ""];
}

/** Announces a body, and sends only its beginning. */
async function upload(path: string, length: number, { sent = "{", user = "usr_ann" } = {}): Promise<Socket> {
  const socket = connect(port(), "127.0.0.1");
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user}\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: ${length}\r\n\r\n${sent}`);
  return socket;
}

const value = (bytes: number): string => JSON.stringify({ value: "x".repeat(bytes) });
const inFlight = (count: number): Promise<void> =>
  vi.waitFor(() => expect(bodies.admission.load.callsInFlight).toBe(count), { interval: 2 });

describe("a body", () => {
  test("without a credential is refused above 64 KiB, whatever the route allows", async () => {
    expect(await post("/open", value(MAX_ANONYMOUS_BODY_BYTES - 100))).toEqual([200, ""]);
    for (const path of ["/open", "/large"]) {
      expect(await post(path, value(MAX_ANONYMOUS_BODY_BYTES))).toEqual([413, "request_too_large"]);
    }
    expect(await post("/mine", value(500 * KIB), "usr_ann")).toEqual([200, ""]);
    expect(await post("/mine", value(MIB), "usr_ann")).toEqual([413, "request_too_large"]);
  });

  test("that is nested too deeply is rejected as malformed before it is parsed", async () => {
    const nested = (levels: number): string => `{"value":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(await post("/mine", nested(63), "usr_ann")).toEqual([200, ""]);
    for (const body of [nested(64), nested(400_000), "[".repeat(900_000)]) {
      expect(await post("/mine", body, "usr_ann")).toEqual([400, "malformed_json"]);
    }
  });

  test.each([
    ["is too large", "[".repeat(MIB), 413],
    ["is not JSON", "[".repeat(60), 400],
    ["is nested too deeply", "[".repeat(60_000), 400],
    ["does not fit its schema", "[]", 400],
  ])("that %s counts as a failed attempt", async (_what, body, status) => {
    for (let n = 0; n < FAILURES; n++) expect((await post("/open", body))[0]).toBe(status);
    expect(await post("/open", value(1))).toEqual([429, "rate_limit_exceeded"]);
  });

  test("whose client disconnects before the response counts as a failed attempt", async () => {
    for (let n = 0; n < FAILURES; n++) {
      const socket = await upload("/open", 1000);
      await inFlight(1);
      socket.destroy();
      await inFlight(0);
    }
    await vi.waitFor(async () => expect(await post("/open", value(1))).toEqual([429, "rate_limit_exceeded"]));
  });

  test("of one client leaves room for the bodies of others, and releases its memory", async () => {
    const sent = `{"value":"${"x".repeat(500 * KIB)}`;
    for (let n = 0; n < 4; n++) await upload("/mine", MIB, { sent });
    await vi.waitFor(() => expect(bodies.admission.load.bufferedBytes).toBe(2 * MIB), { interval: 2 });
    expect(await post("/mine", value(500 * KIB), "usr_ann")).toEqual([503, "overloaded"]);
    expect(full).toBe(1);
    expect(await post("/mine", value(500 * KIB), "usr_bob")).toEqual([200, ""]);
    for (const socket of sockets.splice(0)) socket.destroy();
    await inFlight(0);
    expect(bodies.admission.load.bufferedBytes).toBe(0);
    expect(await post("/mine", value(500 * KIB), "usr_ann")).toEqual([200, ""]);
  });

  test("that only announces its size reserves little memory, and ends with 408", async () => {
    const socket = await upload("/mine", MIB);
    await inFlight(1);
    await vi.waitFor(() => expect(bodies.admission.load.bufferedBytes).toBeGreaterThan(0), { interval: 2 });
    expect(bodies.admission.load.bufferedBytes).toBeLessThanOrEqual(256 * KIB);
    for (let n = 0; n < 10; n++) bodies.pace.tick();
    const [response] = (await once(socket, "data")) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    await inFlight(0);
  });

  test("in chunks of one byte costs what is counted for it", async () => {
    const socket = await upload("/mine", 0, { sent: "" });
    socket.destroy();
    const chunked = connect(port(), "127.0.0.1");
    sockets.push(chunked);
    const head =
      "POST /mine HTTP/1.1\r\nhost: x\r\nauthorization: Bearer usr_ann\r\ncontent-type: application/json\r\n";
    chunked
      .on("error", () => undefined)
      .write(`${head}transfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(40_000)}`);
    const [response] = (await once(chunked, "data")) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1\.1 (413|503) /);
  });
});
