import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { daemonBuildListSchema } from "@fairlead/protocol/daemon-builds";
import { DomainError } from "@fairlead/protocol/errors";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listen } from "../../http/listening/listen.ts";
import { createPlatformHost, type PlatformApp } from "../../http/platform-host.ts";
import { createLog } from "../../installation/process/log.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { registerDaemonBuildRoutes } from "./daemon-build-routes.ts";
import { DaemonBuildService } from "./daemon-build-service.ts";
import { DownloadSlots } from "./download-slots.ts";
import { registerInstallRoutes } from "./install-routes.ts";
import { offerBuild } from "./offered-build.fixture.ts";

const PUBLIC_URL = "https://platform.example";
const INSTALL_SCRIPT = new URL("../../../../../scripts/install/install.sh", import.meta.url).pathname;
const FILE = "fairlead-daemon-1.2.3-linux-x64.tar.gz";
const CONTENT = "0123456789";

let folder: string;
let app: PlatformApp;
let sha256: string;
const bounds = new BoundCounters();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-builds-"));
  sha256 = offerBuild(folder, "1.2.3", CONTENT).files[0]?.sha256 ?? "";
  for (const version of ["1.2.1", "1.2.2"]) offerBuild(folder, version);
  const log = createLog({ level: "silent" });
  const daemonBuilds = new DaemonBuildService({ folders: [folder], serverVersion: "1.2.3", log });
  app = createPlatformHost({
    ids: countingIds(),
    log,
    authenticate: async () => {
      throw new DomainError("invalid_credential", "Nobody is known here.");
    },
    requests: new RequestTally(),
    routes: (routes) => {
      registerDaemonBuildRoutes(routes, {
        daemonBuilds,
        slots: new DownloadSlots(bounds, { perNetwork: 2, total: 3 }),
      });
      registerInstallRoutes(routes, { daemonBuilds, publicUrl: PUBLIC_URL, installScript: INSTALL_SCRIPT });
    },
    document: { publicUrl: PUBLIC_URL, inferencePaths: {} },
    health: { publicJwks: () => ({ keys: [] }), ready: async () => undefined },
  });
  await app.ready();
});
afterAll(async () => {
  app.server.closeAllConnections();
  await app.close();
  rmSync(folder, { recursive: true });
});

const get = async (url: string, headers: Record<string, string> = {}) => app.inject({ method: "GET", url, headers });

describe("the list of builds", () => {
  test("is public and paginated", async () => {
    const first = daemonBuildListSchema.parse((await get("/v1/daemon-builds?pageSize=2")).json());
    expect(first.daemonBuilds.map(({ version }) => version)).toEqual(["1.2.3", "1.2.2"]);
    const rest = await get(`/v1/daemon-builds?pageSize=2&pageToken=${first.nextPageToken}`);
    expect(daemonBuildListSchema.parse(rest.json())).toMatchObject({
      daemonBuilds: [{ version: "1.2.1" }],
      nextPageToken: "",
    });
  });

  test("contains the version of the server, which daemons are compared with when there is no build", async () => {
    expect((await get("/v1/daemon-builds")).json()).toMatchObject({ serverVersion: "1.2.3" });
  });
});

describe("a download", () => {
  test("is the archive, with an ETag that changes with it", async () => {
    const answer = await get(`/v1/daemon-builds/${FILE}`);
    expect(answer.body).toBe(CONTENT);
    expect(answer.headers).toMatchObject({ etag: `"${sha256}"`, "content-length": "10", "accept-ranges": "bytes" });
    expect(answer.headers["content-type"]).toBe("application/gzip");
    expect((await get(`/v1/daemon-builds/${FILE}`, { "if-none-match": `"${sha256}"` })).statusCode).toBe(304);
  });

  test("can be resumed", async () => {
    const answer = await get(`/v1/daemon-builds/${FILE}`, { range: "bytes=4-" });
    expect(answer.statusCode).toBe(206);
    expect(answer.body).toBe("456789");
    expect(answer.headers["content-range"]).toBe("bytes 4-9/10");
  });

  test("has a checksum next to it", async () => {
    expect((await get(`/v1/daemon-builds/${FILE}.sha256`)).body).toBe(`${sha256}  ${FILE}\n`);
  });

  test.each([
    "manifest.json",
    "..%2F1.2.3%2Fmanifest.json",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%E2%80%AE",
    "fairlead-daemon-9.9.9-linux-x64.tar.gz",
  ])("finds no other file: %s", async (name) => {
    expect((await get(`/v1/daemon-builds/${name}`)).statusCode).toBe(404);
  });
});

describe("the install script", () => {
  test("contains the address from the settings, whatever host a request names", async () => {
    const answer = await get("/install.sh", { host: "evil.example", "x-forwarded-host": "evil.example" });
    expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(answer.body).toContain(`platform_url='${PUBLIC_URL}'\noffered_version='1.2.3'\n`);
    expect(answer.body).not.toContain("evil");
    expect(answer.body).not.toContain("'@");
  });
});

test("downloads that are not read keep their slots, and further ones are rejected", async () => {
  offerBuild(folder, "1.2.4", "x".repeat(20_000_000));
  await listen(app.server, { host: "127.0.0.1", port: 0, setting: "test" });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/v1/daemon-builds/fairlead-daemon-1.2.4-linux-x64.tar.gz`;
  const stop = new AbortController();
  const held = await Promise.all([fetch(url, { signal: stop.signal }), fetch(url, { signal: stop.signal })]);
  expect(held.map(({ status }) => status)).toEqual([200, 200]);
  const refused = await fetch(url);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "10"]);
  expect(bounds.counts.get("daemon_downloads")).toBe(1);
  stop.abort();
  const statusNow = async (): Promise<number> => {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.status;
  };
  await expect.poll(statusNow).toBe(200);
});
