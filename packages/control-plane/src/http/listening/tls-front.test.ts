import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { Agent, request } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "../../installation/process/log.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { OpenConnections } from "../limits/open-connections.ts";
import { readCertificate } from "./certificate-files.ts";
import { TlsFront } from "./tls-front.ts";

let dir: string;
let certFile: string;
let keyFile: string;
let server: Server;
let front: TlsFront | null = null;
let connections: OpenConnections | null = null;
let lines: string[];

/** A fresh pair in the files, as a renewal leaves it. */
function renew(days = 365): void {
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const how = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", `${days}`];
  execFileSync("openssl", ["req", "-x509", ...how, "-keyout", keyFile, "-out", certFile, ...subject], {
    stdio: "ignore",
  });
}

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-tls-"));
  [certFile, keyFile] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  lines = [];
  connections = null;
  renew();
  server = createServer((incoming, response) => response.end(`${"encrypted" in incoming.socket} ${incoming.url}`));
});
afterEach(async () => {
  front?.close();
  server.closeAllConnections();
  server.close();
  rmSync(dir, { recursive: true });
});

async function serve(clock = new TestClock()): Promise<number> {
  const log = createLog({ level: "info", destination: { write: (line) => void lines.push(line) } });
  front = new TlsFront({ certFile, keyFile, log, clock, lookEveryMs: 10 });
  front.serve(server);
  connections?.guard(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** @returns the body, and the serial number of the certificate that was shown. */
async function get(port: number, agent?: Agent): Promise<{ body: string; serial: string }> {
  const call = request({ port, host: "127.0.0.1", path: "/x", rejectUnauthorized: false, ...(agent ? { agent } : {}) });
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
  return { body: await text(response), serial };
}

describe("TLS in front of a host", () => {
  test("serves HTTPS, and requests are marked as encrypted", async () => {
    const port = await serve();
    expect((await get(port)).body).toBe("true /x");
    expect(front?.expiresAt).toBe(readCertificate({ certFile, keyFile }).expiresAt);
  });

  test("uses a renewed certificate for new connections, while open ones continue", async () => {
    const port = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await get(port, agent);
    renew();
    await vi.waitUntil(() => lines.some((line) => line.includes("was replaced")));
    const kept = await get(port, agent);
    const fresh = await get(port);
    expect(kept.body).toBe("true /x");
    expect(fresh.serial).not.toBe(first.serial);
    agent.destroy();
  });

  test("keeps the previous certificate while the files do not match, and logs it once", async () => {
    const port = await serve();
    const { serial } = await get(port);
    const before = readFileSync(keyFile);
    renew();
    writeFileSync(keyFile, before);
    await vi.waitUntil(() => lines.some((line) => line.includes("does not match the certificate")));
    writeFileSync(certFile, "half a cert");
    await vi.waitUntil(() => lines.some((line) => line.includes("valid PEM file")));
    expect((await get(port)).serial).toBe(serial);
    expect(lines.filter((line) => line.includes("does not match the certificate")).length).toBeLessThan(3);
  });

  test("survives clients that do not speak TLS or disconnect during the handshake", async () => {
    const port = await serve();
    const plain = connect(port, "127.0.0.1");
    plain.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    plain.resume();
    await once(plain, "close");
    const gone = connect(port, "127.0.0.1");
    await once(gone, "connect");
    gone.destroy();
    expect((await get(port)).body).toBe("true /x");
  });

  test("counts unfinished handshakes and garbage as connections, and closes them to make room for others", async () => {
    const max = 5;
    const bounds = new BoundCounters();
    connections = new OpenConnections({ max, maxPerAddress: max, isTrusted: () => false, bounds });
    const port = await serve();
    await get(port, new Agent({ keepAlive: false }));
    await vi.waitFor(() => expect(connections?.open).toBe(0));
    const strangers: Socket[] = [];
    for (let n = 0; n < 4 * max; n++) {
      const accepted = once(server, "connection");
      const stranger = connect(port, "127.0.0.1");
      stranger.on("error", () => undefined);
      // The begin of a ClientHello, or bytes of another protocol.
      stranger.write(n % 2 === 0 ? Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]) : "x");
      strangers.push(stranger);
      await accepted;
      expect(connections.open).toBeLessThanOrEqual(max);
    }
    expect((await get(port)).body).toBe("true /x");
    expect(bounds.counts.get("connections_per_address")).toBeGreaterThan(0);
    for (const stranger of strangers) stranger.destroy();
  });

  test("refuses renegotiation on an open connection", async () => {
    const port = await serve();
    const socket = tlsConnect({ port, host: "127.0.0.1", rejectUnauthorized: false, maxVersion: "TLSv1.2" });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    const outcome = new Promise<unknown>((resolve) => {
      socket.once("error", resolve);
      socket.renegotiate({}, () => resolve("renegotiated"));
    });
    expect(String(await outcome)).toContain("no renegotiation");
  });

  test("warns once a day about a certificate that expires soon", async () => {
    renew(10);
    const clock = new TestClock();
    // The test's clock stands before the certificate's time.
    clock.advance(Math.max(0, readCertificate({ certFile, keyFile }).expiresAt - clock.now() - 24 * 3_600_000));
    await serve(clock);
    const warnings = (): number => lines.filter((line) => line.includes("expires soon")).length;
    expect(warnings()).toBe(1);
    clock.advance(25 * 3_600_000);
    await vi.waitUntil(() => warnings() === 2);
  });
});

test("unusable files are rejected with a clear message", () => {
  expect(() => readCertificate({ certFile: join(dir, "none"), keyFile })).toThrow(/cannot be read. Correct server.tls/);
  writeFileSync(certFile, "x");
  expect(() => readCertificate({ certFile, keyFile })).toThrow(/valid PEM file/);
});
