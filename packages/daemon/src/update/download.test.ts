import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DownloadOptions, download, fileSha256 } from "./download.ts";

const CONTENT = randomBytes(300_000);
let folder: string;
let server: Server;
let url: string;
let seen: IncomingMessage[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

/** Responds like the platform host, including range requests. */
const serve = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
  if (from > 0) response.writeHead(206, { "content-range": `bytes ${from}-${CONTENT.length - 1}/${CONTENT.length}` });
  response.end(CONTENT.subarray(from));
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-download-"));
  seen = [];
  answer = serve;
  server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/build`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

const file = (): string => join(folder, "build.part");
const fetchIt = (changes: Partial<DownloadOptions> = {}): Promise<void> => {
  const signal = new AbortController().signal;
  return download({ url, file: file(), bytes: CONTENT.length, signal, onBytes: async () => undefined, ...changes });
};
const expectWhole = async (): Promise<void> =>
  expect(await fileSha256(file())).toBe(createHash("sha256").update(CONTENT).digest("hex"));

describe("a download", () => {
  test("arrives complete, reports its progress, and carries no credential", async () => {
    const told: number[] = [];
    await fetchIt({ onBytes: async (received) => void told.push(received) });
    await expectWhole();
    expect([told[0], told.at(-1)]).toEqual([0, CONTENT.length]);
    expect(seen[0]?.headers.authorization).toBeUndefined();
  });

  test("that was interrupted continues where it stopped", async () => {
    answer = (_request, response) => {
      response.writeHead(200, { "content-length": CONTENT.length });
      response.write(CONTENT.subarray(0, 100_000), () => response.destroy());
      answer = serve;
    };
    await expect(fetchIt()).rejects.toThrow();
    const had = (await readFile(file())).length;
    await fetchIt();
    await expectWhole();
    expect(seen[1]?.headers.range).toBe(had === 0 ? undefined : `bytes=${had}-`);
  });

  test("starts over if the host sends everything although a part was requested", async () => {
    await writeFile(file(), "something else");
    answer = (_request, response) => response.end(CONTENT);
    await fetchIt();
    await expectWhole();
  });

  test("that already exists makes no request", async () => {
    await writeFile(file(), CONTENT);
    await fetchIt();
    expect(seen).toEqual([]);
  });

  test.each([
    { what: "a part that begins at another offset", status: 206, headers: { "content-range": "bytes 5-9/10" } },
    { what: "a redirect, which is not followed", status: 302, headers: { location: "http://127.0.0.1:9/" } },
    { what: "an error response", status: 404, headers: {} },
  ])("is not accepted from $what", async ({ status, headers }) => {
    await writeFile(file(), "x");
    answer = (_request, response) => void response.writeHead(status, headers).end("x");
    await expect(fetchIt()).rejects.toThrow(`the platform host returned ${status}`);
    expect(await readFile(file(), "utf8")).toBe("x");
  });

  test("fails when the host falls silent", async () => {
    answer = (_request, response) => void response.writeHead(200).write("x");
    await expect(fetchIt({ inactivityMs: 100 })).rejects.toThrow("no data for 0.1 s");
  });

  test("fails after its maximum time, however steadily data arrives", async () => {
    answer = (_request, response) => {
      const timer = setInterval(() => response.write("x"), 10);
      response.on("close", () => clearInterval(timer));
    };
    await expect(fetchIt({ maxMs: 200 })).rejects.toThrow();
  });

  test("fails if it exceeds the expected length", async () => {
    await expect(fetchIt({ bytes: 1000 })).rejects.toThrow("exceeds the expected 1000 bytes");
  });

  test("stops as soon as it must not continue, and when it is cancelled", async () => {
    const full = fetchIt({
      onBytes: (received) => (received > 0 ? Promise.reject(new Error("full")) : Promise.resolve()),
    });
    await expect(full).rejects.toThrow("full");
    answer = (_request, response) => void response.writeHead(200).write("x");
    const stop = new AbortController();
    const called = fetchIt({ signal: stop.signal });
    await once(server, "request");
    stop.abort();
    await expect(called).rejects.toThrow();
  });
});
