import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aSpec, OWNER } from "../../testing/builders.ts";
import type { PullOptions } from "../container-runtime.ts";
import { DockerRuntime } from "./docker-runtime.ts";

/** Docker's protocol with faults that a healthy engine does not produce. */
let folder = "";
let server: Server;
let urls: string[] = [];
let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
const sockets = new Set<Socket>();
let runtime: DockerRuntime;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-docker-"));
  urls = [];
  server = createServer((request, response) => {
    urls.push(request.url ?? "");
    handle(request, response);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(join(folder, "docker.sock"));
  await once(server, "listening");
  runtime = new DockerRuntime(join(folder, "docker.sock"));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, "close");
  await rm(folder, { recursive: true });
});

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};
const pull = (
  inactivityMs = 5000,
  onProgress: PullOptions["onProgress"] = () => undefined,
  signal = new AbortController().signal,
) => runtime.pull("example/engine", { credentials: null, onProgress, inactivityMs, signal });

describe("pulls", () => {
  const notFound = "example/engine:latest was not found in the registry docker.io";

  test("an error line inside a 200 stream fails the pull", async () => {
    handle = (_, response) => response.writeHead(200).end('{"status":"Pulling"}\n{"error":"manifest unknown"}\n');
    await expect(pull()).rejects.toMatchObject({ kind: "pull-failed", message: notFound, said: "manifest unknown" });
  });

  test("a registry's refusal is reported in our words, with the original kept for the log", async () => {
    handle = (_, response) => json(response, 404, { message: "manifest unknown" });
    await expect(pull()).rejects.toMatchObject({ kind: "pull-failed", message: notFound, said: "manifest unknown" });
  });

  test("without a tag one tag is requested, never all of them", async () => {
    handle = (request, response) =>
      request.method === "POST"
        ? response.writeHead(200).end('{"status":"Status: done"}\n')
        : json(response, 200, { Id: "sha256:1", RepoDigests: null, Config: null });
    await pull();
    expect(urls[0]).toContain("fromImage=example%2Fengine%3Alatest");
  });

  test("a login is sent only in its header", async () => {
    let header: unknown;
    handle = (request, response) => {
      header ??= request.headers["x-registry-auth"];
      if (request.method === "POST") response.writeHead(200).end();
      else json(response, 200, { Id: "sha256:1", RepoDigests: [] });
    };
    const credentials = { username: "robot", password: "canary/+?&" };
    const { signal } = new AbortController();
    const options = { credentials, onProgress: () => undefined, inactivityMs: 5000, signal };
    await runtime.pull("registry.test:5000/engine", options);
    expect(urls.join(" ")).not.toContain("canary");
    const told = JSON.parse(Buffer.from(String(header), "base64url").toString()) as unknown;
    expect(told).toEqual({ ...credentials, serveraddress: "registry.test:5000" });
  });

  test("progress is reported over all layers", async () => {
    const line = (id: string, current: number): string =>
      `${JSON.stringify({ id, status: "Downloading", progressDetail: { current, total: 100 } })}\n`;
    handle = (request, response) =>
      request.method === "POST"
        ? response.writeHead(200).end(line("a", 50) + line("b", 0) + line("a", 100) + line("b", 100))
        : json(response, 200, { Id: "sha256:1", RepoDigests: [] });
    const seen: number[][] = [];
    await pull(5000, ({ percent, pendingBytes }) => seen.push([percent, pendingBytes]));
    expect(seen).toEqual([
      [50, 50],
      [25, 150],
      [50, 100],
      [100, 0],
    ]);
  });

  test("a pull that stops making progress is given up (amazon-ecs-agent#1249)", async () => {
    handle = (_, response) => void response.writeHead(200).write('{"status":"Pulling"}\n');
    await expect(pull(50)).rejects.toMatchObject({
      kind: "pull-failed",
      message: expect.stringContaining("no progress"),
    });
  });

  test("a pull that never begins is given up", async () => {
    handle = () => undefined;
    await expect(pull(50)).rejects.toMatchObject({ kind: "pull-failed" });
  });

  test("a stream that breaks off is not a success", async () => {
    handle = (_, response) => {
      response.writeHead(200).write('{"status":"Pulling"}\n');
      setImmediate(() => response.destroy());
    };
    await expect(pull()).rejects.toMatchObject({ kind: "pull-failed" });
  });

  test("a stream that ends cleanly without the image is not a success", async () => {
    handle = (request, response) =>
      request.method === "POST" ? response.writeHead(200).end() : json(response, 404, { message: "No such image: x" });
    await expect(pull()).rejects.toMatchObject({ kind: "pull-failed" });
  });

  test("a cancelled pull ends", async () => {
    const cancel = new AbortController();
    handle = (_, response) => {
      response.writeHead(200).write('{"status":"Pulling"}\n');
      setImmediate(() => cancel.abort());
    };
    await expect(pull(60_000, undefined, cancel.signal)).rejects.toMatchObject({ kind: "pull-failed" });
  });
});

describe("responses", () => {
  test("a missing container engine is unavailable, not empty (nomad#1859)", async () => {
    const away = new DockerRuntime(join(folder, "none.sock"));
    await expect(away.list(OWNER)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(away.inspect("x")).rejects.toMatchObject({ kind: "unavailable" });
    await expect(away.image("x")).rejects.toMatchObject({ kind: "unavailable" });
  });

  test("one container that cannot be inspected does not hide the others (kubernetes#94829)", async () => {
    const summary = {
      Names: ["/a"],
      Image: "i",
      ImageID: "sha256:1",
      HostConfig: { NetworkMode: "n" },
      Labels: {},
      State: "running",
    };
    handle = (request, response) => {
      if (request.url?.startsWith("/containers/json")) json(response, 200, [{ ...summary, Id: "1" }]);
      else json(response, 500, { message: "deadlock" });
    };
    expect(await runtime.list(OWNER)).toMatchObject([{ id: "1", name: "a", state: "unknown" }]);
  });

  test("a container that disappears between list and inspection is left out", async () => {
    const summary = {
      Id: "1",
      Names: ["/a"],
      Image: "i",
      ImageID: "sha256:1",
      HostConfig: { NetworkMode: "n" },
      Labels: {},
      State: "running",
    };
    handle = (request, response) =>
      request.url?.startsWith("/containers/json")
        ? json(response, 200, [summary])
        : json(response, 404, { message: "No such container: 1" });
    expect(await runtime.list(OWNER)).toEqual([]);
  });

  test("an agent is not created on a network without a gateway, and the error says what to do", async () => {
    const name = "fairlead-0000abcd-agent";
    handle = (_, response) =>
      json(response, 200, { Id: "n", Name: name, IPAM: { Config: [{ Subnet: "198.19.0.0/29" }] } });
    const platform = { name: "host.docker.internal", host: "127.0.0.1", port: 8081, forwarded: true };
    const spec = aSpec({ name: "agent", network: { internet: true, platform } });
    const created = runtime.create({ spec, name: "n", owner: OWNER, projectId: "p", generation: 1, secrets: null });
    await expect(created).rejects.toMatchObject({
      kind: "rejected",
      message: expect.stringContaining(`reports no gateway for the network ${name}`),
    });
    expect(urls).toEqual([`/networks/${name}`]);
  });

  test("environment values never appear in a URL", async () => {
    const network = { Id: "n", Name: "n", IPAM: { Config: [{ Gateway: "198.19.0.1", Subnet: "198.19.0.0/29" }] } };
    handle = ({ url }, response) =>
      url?.startsWith("/networks/") ? json(response, 200, network) : json(response, 201, { Id: "1", Warnings: [] });
    const spec = aSpec({ env: { API_KEY: "very-secret" } });
    await runtime.create({ spec, name: "n", owner: OWNER, projectId: "p", generation: 1, secrets: null });
    expect(urls).toEqual(["/networks/fairlead-0000abcd-engine", "/containers/create?name=n"]);
  });

  test.each([
    [304, "done already"],
    [204, "done now"],
  ])("stopping with status %i is a success", async (status) => {
    handle = (_, response) => response.writeHead(status).end();
    await runtime.stop("x", 1);
    await runtime.start("x");
  });
});

test("a cut event stream is reopened from the last event seen, and each opening counts as a change (go-dockerclient#163)", async () => {
  const streams: ServerResponse[] = [];
  handle = (_, response) => {
    streams.push(response);
    response.writeHead(200).write("");
    response.flushHeaders();
  };
  const stop = new AbortController();
  const heard = vi.fn();
  runtime.watch(OWNER, heard, stop.signal);
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(1));
  streams[0]?.write('{"status":"die","time":1700000000}\n{"sta');
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(2));
  streams[0]?.destroy();
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(3), 5000);
  expect(urls[1]).toContain("since=1700000000");
  stop.abort();
});
