import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { FleetStage } from "../support/fleet-stage.ts";
import { Program } from "../support/program.ts";
import {
  canMount,
  hasProgram,
  type RealProxy,
  type RealProxyOptions,
  SQUID,
  startSquid,
  startTinyproxy,
  TINYPROXY,
} from "../support/real-proxy.ts";
import { selfSigned } from "../support/self-signed.ts";
import { waitFor } from "../support/wait-for.ts";

const DAEMON = new URL("../../packages/daemon/bin/fairlead-daemon.js", import.meta.url).pathname;
const CLI = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const SOON_MS = 30_000;
/** Only the proxy can resolve it. */
const NAME = "platform.test";

interface Way {
  readonly name: string;
  readonly runs: boolean;
  readonly withPassword: boolean;
  start(options: RealProxyOptions): Promise<RealProxy>;
}
const kinds = [
  { name: "squid", runs: hasProgram(SQUID), start: startSquid },
  { name: "tinyproxy", runs: hasProgram(TINYPROXY) && canMount(), start: startTinyproxy },
];
const WAYS: readonly Way[] = kinds.flatMap((kind) => [
  { ...kind, name: kind.name, withPassword: false },
  { ...kind, name: `${kind.name} with a password`, withPassword: true },
]);

const certificate = selfSigned([NAME]);
const trusted = getCACertificates("default");
const dir = mkdtempSync(join(tmpdir(), "fairlead-proxy-"));
const caFile = join(dir, "ca.pem");
let stage: FleetStage;
let platformUrl: string;
let projectId: string;
let nodes = 0;
let commands = 0;

beforeAll(async () => {
  setDefaultCACertificates([...trusted, certificate.cert]);
  writeFileSync(caFile, certificate.cert);
  const keyFile = join(dir, "key.pem");
  writeFileSync(keyFile, certificate.key, { mode: 0o600 });
  const settings = { server: { tls: { certFile: caFile, keyFile } } };
  stage = await FleetStage.start({ nodes: 0, publicName: NAME, settings });
  platformUrl = stage.platformUrl.replace("127.0.0.1", NAME);
  const listed = await stage.call("GET", "/v1/projects");
  projectId = z.object({ projects: z.array(z.object({ id: z.string() })) }).parse(listed).projects[0]?.id ?? "";
});
afterAll(async () => {
  await stage?.remove();
  setDefaultCACertificates(trusted);
  rmSync(dir, { recursive: true, force: true });
});

describe.each(WAYS)("a node behind $name", ({ name, runs, withPassword, ...way }) => {
  let proxy: RealProxy;
  let daemon: Program | null = null;
  let own: string;

  beforeEach(async ({ skip }) => {
    if (!runs) skip(`there is no ${name} here`);
    own = mkdtempSync(join(dir, "case-"));
    proxy = await way.start({ names: [NAME], withPassword });
  });
  afterEach(async () => {
    await daemon?.stop();
    daemon = null;
    await proxy?.stop();
  });

  const run = (command: string, env: NodeJS.ProcessEnv, ...flags: string[]): Program => {
    const folders = ["--state-dir", join(own, "state"), "--docker-socket", join(own, "no.sock")];
    const settings = { FAIRLEAD_DAEMON_CA_FILE: caFile, ...env };
    return new Program([process.execPath, DAEMON, command, ...folders, ...flags], join(own, "daemon.log"), {
      env: settings,
    });
  };
  const enrolWith = async (env: NodeJS.ProcessEnv): Promise<Program> => {
    nodes += 1;
    const asked = {
      projectId,
      planId: "byo",
      name: `Behind a proxy ${nodes}`,
      engineConfig: { preset: "fairlead-demo" },
    };
    const { node } = z
      .object({ node: z.object({ id: z.string() }) })
      .parse(await stage.call("POST", "/v1/nodes", asked));
    const issued = await stage.call("POST", `/v1/nodes/${node.id}/bootstrap-tokens`, {});
    const tokenFile = join(own, "token");
    writeFileSync(tokenFile, z.object({ token: z.string() }).parse(issued).token, { mode: 0o600 });
    return run("run", env, "--bootstrap-token-file", tokenFile, "--runtime-dir", join(own, "run"));
  };

  test("enrolls and opens its link and its tunnel", async () => {
    daemon = await enrolWith({ HTTPS_PROXY: proxy.fullUrl });
    await waitFor("the link", SOON_MS, async () => (await stage.figure("fairlead_daemon_links_open")) === 1);
    await waitFor("the tunnel", SOON_MS, async () => (await stage.figure("fairlead_tunnels_open")) === 1);
    for (const secret of proxy.secrets) expect(daemon.log).not.toContain(secret);
    await daemon.stop();
    await waitFor("the end", SOON_MS, async () => (await stage.figure("fairlead_daemon_links_open")) === 0);
    await waitFor("the proxy's log", SOON_MS, async () => proxy.targets().length >= 3);
    expect(new Set(proxy.targets())).toEqual(new Set([new URL(platformUrl).host]));
  });

  test("sees in `doctor` that the platform responds, and through which proxy", async () => {
    const doctor = run("doctor", { https_proxy: proxy.fullUrl }, "--platform-url", platformUrl, "--json");
    await doctor.ended;
    const { checks } = z
      .object({ checks: z.array(z.object({ name: z.string(), level: z.string(), message: z.string() })) })
      .parse(JSON.parse(doctor.log));
    const found = (of: string) => checks.find((check) => check.name === of);
    expect(found("platform")).toMatchObject({ level: "ok" });
    expect(found("proxy")).toMatchObject({ level: "ok", message: proxy.url });
  });

  const fairlead = async (env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> => {
    const settings = { FAIRLEAD_BASE_URL: platformUrl, FAIRLEAD_TOKEN: stage.token, FAIRLEAD_CA_FILE: caFile };
    const command = [process.execPath, CLI, "project", "list", "--json"];
    const program = new Program(command, join(own, `cli-${commands++}.log`), { env: { ...settings, ...env } });
    await program.ended;
    return { code: program.exitCode, output: program.log };
  };

  test("calls the platform with the command line", async () => {
    const { code, output } = await fairlead({ https_proxy: proxy.fullUrl });
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(projectId) });
  });

  test.runIf(withPassword)("sees in the CLI that the proxy requires a password, without the password", async () => {
    const wrong = await fairlead({ HTTPS_PROXY: proxy.fullUrl.replace(/:[^:@]*@/, ":wr0ng-one@") });
    expect(wrong).toMatchObject({ code: 1, output: expect.stringContaining("requires a valid user and password") });
    expect(wrong.output).toContain(proxy.url);
    const broken = await fairlead({ HTTPS_PROXY: "socks5://me:wr0ng-one@proxy.test" });
    expect(broken).toMatchObject({ code: 2, output: expect.stringMatching(/^fairlead: HTTPS_PROXY must be the URL/) });
    expect(wrong.output + broken.output).not.toContain("wr0ng-one");
  });

  test.runIf(withPassword)("logs that the proxy requires a password, without the password itself", async () => {
    const wrong = proxy.fullUrl.replace(/:[^:@]*@/, ":wr0ng-one@");
    daemon = await enrolWith({ HTTPS_PROXY: wrong });
    const running = daemon;
    await waitFor("the message", SOON_MS, async () => running.log.includes("requires a valid user and password"));
    expect(running.log).toContain(proxy.url);
    expect(running.log).not.toContain("wr0ng-one");
  });
});
