import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeHttpClient } from "../link/http-client.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import type { ProbeSettings } from "../runtime/ownership.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { createEngineProbe, imageDigest, imageVersion } from "./engine-facts.ts";
import type { ProbeTarget } from "./health.ts";

const probe = createEngineProbe(nodeHttpClient);
const image = { id: "sha256:id", repoDigests: [], labels: {}, tags: [], start: { entrypoint: [], command: [] } };
let server: Server;
let answers: Record<string, { status?: number; body?: unknown }>;
let bodies: string[];
let port: number;
const silent = new Set<string>();
const WHOLE = { models: [], completion: true };

beforeEach(async () => {
  answers = {};
  silent.clear();
  bodies = [];
  server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      if (silent.has(request.url ?? "")) return;
      const answer = answers[request.url ?? ""] ?? { status: 404 };
      response.writeHead(answer.status ?? 200).end(JSON.stringify(answer.body ?? {}));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});
afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
});

function target(settings: Partial<ProbeSettings> = {}, probeKind: "http" | "completion" = "http"): ProbeTarget {
  const container = new MemoryRuntime(new FakeTime()).plant({ name: "c", image: "example/engine:1.2" });
  const health = {
    path: "/health",
    intervalSeconds: 5,
    timeoutSeconds: 1,
    startPeriodSeconds: 0,
    failureThreshold: 3,
    probe: probeKind,
  };
  return {
    container,
    port,
    image,
    settings: { workloadName: "engine", port: 1, health, models: null, versionPath: null, ...settings },
  };
}

describe("health", () => {
  test("2xx is healthy, and anything else is reported", async () => {
    answers["/health"] = {};
    expect(await probe.check(target(), WHOLE)).toBeNull();
    answers["/health"] = { status: 503 };
    expect(await probe.check(target(), WHOLE)).toEqual({ words: "/health returned 503", mayBeLoading: true });
    answers["/health"] = { status: 500 };
    expect(await probe.check(target(), WHOLE)).toEqual({ words: "/health returned 500", mayBeLoading: false });
  });

  test("an engine that does not respond yet has a clear message, however its connection ends", async () => {
    const refused = await probe.check({ ...target(), port: 9 }, WHOLE);
    expect(refused).toEqual({ words: "not listening on its port", mayBeLoading: true });
    // Docker's proxy does this until the container listens.
    server.removeAllListeners("request").on("connection", (socket) => socket.destroy());
    const dropped = await probe.check(target(), WHOLE);
    expect(dropped).toEqual({ words: "closes connections without a response", mayBeLoading: true });
  });

  test("a completion probe requests one real token from a model that the engine has", async () => {
    answers["/health"] = {};
    answers["/v1/models"] = { body: { data: [{ id: "tiny" }] } };
    answers["/v1/chat/completions"] = { status: 500 };
    expect(await probe.check(target({}, "completion"), WHOLE)).toMatchObject({ words: "a completion returned 500" });
    expect(await probe.check(target({}, "completion"), { models: [], completion: false })).toBeNull();
    answers["/v1/chat/completions"] = {};
    expect(await probe.check(target({}, "completion"), WHOLE)).toBeNull();
    expect(JSON.parse(bodies.at(-1) ?? "")).toMatchObject({ model: "tiny", max_tokens: 1 });
  });

  test("an engine that hangs while generating a token is not healthy", async () => {
    answers["/health"] = {};
    const slow = { ...target({ models: ["tiny"] }, "completion") };
    silent.add("/v1/chat/completions");
    expect(await probe.check(slow, WHOLE)).toMatchObject({ words: "no response within 1000 ms" });
  });

  test("an engine without a model, or one that requires a key, has nothing more to prove", async () => {
    answers["/health"] = {};
    answers["/v1/models"] = { body: { data: [] } };
    expect(await probe.check(target({}, "completion"), WHOLE)).toBeNull();
    expect(bodies).toHaveLength(2);
    answers["/v1/chat/completions"] = { status: 401 };
    expect(await probe.check(target({ models: ["tiny"] }, "completion"), WHOLE)).toBeNull();
  });
});

describe("facts", () => {
  test("models that the spec names are used as they are; otherwise the engine is asked", async () => {
    answers["/v1/models"] = { body: { object: "list", data: [{ id: "a" }, { id: "b", more: 1 }] } };
    expect((await probe.facts(target())).models).toEqual(["a", "b"]);
    expect((await probe.facts(target({ models: ["named"] }))).models).toEqual(["named"]);
  });

  test("an engine without a list of models has none; an invalid list is requested again", async () => {
    expect((await probe.facts(target())).models).toEqual([]);
    answers["/v1/models"] = { body: { data: "?" } };
    await expect(probe.facts(target())).rejects.toThrow();
  });

  test.each([
    [{ version: "0.11.0" }, "0.11.0"],
    [{ build_info: "b6123-abc" }, "b6123-abc"],
    [{ other: 1 }, "1.2"],
  ])("the engine's own version endpoint (%j) takes precedence", async (body, version) => {
    answers["/version"] = { body };
    expect((await probe.facts(target({ models: [], versionPath: "/version" }))).version).toBe(version);
  });
});

test.each([
  ["example/engine:1.2", {}, "1.2"],
  ["example/engine:1.2", { "org.opencontainers.image.version": "1.2.3" }, "1.2.3"],
  ["registry.test:5000/engine", {}, ""],
  ["registry.test:5000/engine:7@sha256:abc", {}, "7"],
  ["engine@sha256:abc", {}, ""],
])("the version of image %s with labels %j is %j", (reference, labels, version) => {
  expect(imageVersion(reference, { ...image, labels })).toBe(version);
});

test("the digest is the registry's for the requested name, otherwise the image's ID", () => {
  const repoDigests = ["mirror.test/engine@sha256:m", "registry.test:5000/engine@sha256:r"];
  expect(imageDigest("registry.test:5000/engine:1", { ...image, repoDigests })).toBe("sha256:r");
  expect(imageDigest("other/engine:1", { ...image, repoDigests })).toBe("sha256:m");
  expect(imageDigest("fairlead/demo-engine:1", image)).toBe("sha256:id");
  expect(imageDigest("fairlead/demo-engine:1", null)).toBe("");
});
