import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { daemonBuildListSchema } from "@fairlead/protocol/daemon-builds";
import { DomainError } from "@fairlead/protocol/errors";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPlatformHost, type PlatformApp } from "../http/platform-host.ts";
import { RequestTally } from "../http/request-tally.ts";
import { createLog } from "../log.ts";
import { countingIds } from "../testing.fixture.ts";
import { registerDaemonBuildRoutes } from "./daemon-build-routes.ts";
import { DaemonBuildService } from "./daemon-build-service.ts";
import { registerInstallRoutes } from "./install-routes.ts";
import { offerBuild } from "./offered-build.fixture.ts";

const PUBLIC_URL = "https://platform.example";
const INSTALL_SCRIPT = new URL("../../../../install/install.sh", import.meta.url).pathname;
const FILE = "fairlead-daemon-1.2.3-linux-x64.tar.gz";
const CONTENT = "0123456789";

let folder: string;
let app: PlatformApp;
let sha256: string;

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
      registerDaemonBuildRoutes(routes, daemonBuilds);
      registerInstallRoutes(routes, { daemonBuilds, publicUrl: PUBLIC_URL, installScript: INSTALL_SCRIPT });
    },
    document: { publicUrl: PUBLIC_URL, inferencePaths: {} },
    health: { publicJwks: () => ({ keys: [] }), ready: async () => undefined },
  });
  await app.ready();
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true });
});

const get = async (url: string, headers: Record<string, string> = {}) => app.inject({ method: "GET", url, headers });

describe("the list of builds", () => {
  test("is for everybody, and goes on page by page", async () => {
    const first = daemonBuildListSchema.parse((await get("/v1/daemon-builds?pageSize=2")).json());
    expect(first.daemonBuilds.map(({ version }) => version)).toEqual(["1.2.3", "1.2.2"]);
    const rest = await get(`/v1/daemon-builds?pageSize=2&pageToken=${first.nextPageToken}`);
    expect(daemonBuildListSchema.parse(rest.json())).toMatchObject({
      daemonBuilds: [{ version: "1.2.1" }],
      nextPageToken: "",
    });
  });

  test("tells the release of the server, by which daemons are measured where no build is offered", async () => {
    expect((await get("/v1/daemon-builds")).json()).toMatchObject({ serverVersion: "1.2.3" });
  });
});

describe("a download", () => {
  test("is the tar, under a tag that changes with it", async () => {
    const answer = await get(`/v1/daemon-builds/${FILE}`);
    expect(answer.body).toBe(CONTENT);
    expect(answer.headers).toMatchObject({ etag: `"${sha256}"`, "content-length": "10", "accept-ranges": "bytes" });
    expect(answer.headers["content-type"]).toBe("application/gzip");
    expect((await get(`/v1/daemon-builds/${FILE}`, { "if-none-match": `"${sha256}"` })).statusCode).toBe(304);
  });

  test("goes on in the middle", async () => {
    const answer = await get(`/v1/daemon-builds/${FILE}`, { range: "bytes=4-" });
    expect(answer.statusCode).toBe(206);
    expect(answer.body).toBe("456789");
    expect(answer.headers["content-range"]).toBe("bytes 4-9/10");
  });

  test("has a checksum beside it", async () => {
    expect((await get(`/v1/daemon-builds/${FILE}.sha256`)).body).toBe(`${sha256}  ${FILE}\n`);
  });

  test.each([
    "manifest.json",
    "..%2F1.2.3%2Fmanifest.json",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%E2%80%AE",
    "fairlead-daemon-9.9.9-linux-x64.tar.gz",
  ])("leads nowhere else: %s", async (name) => {
    expect((await get(`/v1/daemon-builds/${name}`)).statusCode).toBe(404);
  });
});

describe("the install script", () => {
  test("holds the address of the settings, whatever host a request names", async () => {
    const answer = await get("/install.sh", { host: "evil.example", "x-forwarded-host": "evil.example" });
    expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(answer.body).toContain(`platform_url='${PUBLIC_URL}'\noffered_version='1.2.3'\n`);
    expect(answer.body).not.toContain("evil");
    expect(answer.body).not.toContain("'@");
  });
});
