import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { createServer, type Server, request as sendTo } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InstallMachine, VERSION } from "../support/install-machine.ts";
import { selfSigned } from "../support/self-signed.ts";

/** install.sh on a machine that reaches its platform through a proxy. */

const canUnshare = spawnSync("unshare", ["--mount", "true"]).status === 0;
const SETTINGS = "etc/fairlead/daemon.env";
/** Only the proxy can resolve it. */
const publicUrl = "http://platform.test:8123";

describe.runIf(canUnshare)("install.sh behind a proxy (needs root and mount namespaces)", () => {
  let machine: InstallMachine;
  let proxy: Server;
  let port: number;
  let asked: { readonly url: string; readonly authorization: string | undefined }[];

  beforeEach(async () => {
    asked = [];
    machine = await InstallMachine.start();
    proxy = createServer((request, response) => {
      const { url = "", headers } = request;
      asked.push({ url, authorization: headers["proxy-authorization"] });
      const { pathname } = new URL(url);
      sendTo(machine.url + pathname, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      }).end();
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    ({ port } = proxy.address() as AddressInfo);
  });
  afterEach(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await machine.remove();
  });

  const token = (): string => machine.token({ version: VERSION, sha256: { x64: machine.sha256 } }, publicUrl);
  const kept = (): string[] =>
    machine
      .read(SETTINGS)
      .split("\n")
      .filter((line) => /^\w+=/.test(line));

  test("installs through it, stores it for the daemon readable only by root, and shows no password", async () => {
    const url = `http://me:se%40cret@127.0.0.1:${port}`;
    const env = { http_proxy: url, HTTPS_PROXY: url, NO_PROXY: "intern.test, 10.0.0.0/8" };
    const { code, output } = await machine.run(["--insecure"], { token: token(), publicUrl, env });
    expect(output).toContain(`proxy http://127.0.0.1:${port}, also for the daemon`);
    expect(code).toBe(0);
    expect(asked.map((call) => new URL(call.url).host)).toEqual(asked.map(() => "platform.test:8123"));
    expect(asked[0]?.authorization).toBe(`Basic ${Buffer.from("me:se@cret").toString("base64")}`);
    expect(kept()).toEqual([
      "FAIRLEAD_DAEMON_INSECURE=true",
      `HTTPS_PROXY=${url}`,
      `HTTP_PROXY=${url}`,
      "NO_PROXY=intern.test, 10.0.0.0/8",
    ]);
    expect(statSync(machine.path(SETTINGS)).mode & 0o777).toBe(0o600);
    expect(output + machine.calls().join("\n")).not.toMatch(/se%40cret|se@cret/);
  });

  test("still uses it when run again without the variables, and replaces it with a new one", async () => {
    const old = { HTTP_PROXY: `http://old:word@127.0.0.1:${port}` };
    expect(await machine.run(["--insecure"], { token: token(), publicUrl, env: old })).toMatchObject({ code: 0 });
    asked.length = 0;
    expect(await machine.run(["--insecure"], { publicUrl })).toMatchObject({ code: 0 });
    expect(asked.length).toBeGreaterThan(0);
    const now = { http_proxy: `http://127.0.0.1:${port}` };
    expect(await machine.run(["--insecure"], { publicUrl, env: now })).toMatchObject({ code: 0 });
    expect(kept()).toEqual(["FAIRLEAD_DAEMON_INSECURE=true", `HTTP_PROXY=http://127.0.0.1:${port}`]);
  });

  test("does not use it for a platform on this machine", async () => {
    const build = { version: VERSION, sha256: { x64: machine.sha256 } };
    const env = { http_proxy: `http://127.0.0.1:${port}` };
    expect(await machine.run([], { token: machine.token(build), env })).toMatchObject({ code: 0 });
    expect(asked).toEqual([]);
  });

  test("warns if Docker has no proxy, and only then", async () => {
    const env = { HTTPS_PROXY: `http://127.0.0.1:${port}`, HTTP_PROXY: `http://127.0.0.1:${port}` };
    const words = "Docker has no proxy for pulling images";
    const flags = ["--insecure", "--dry-run"];
    expect((await machine.run(flags, { token: token(), publicUrl, env })).output).toContain(words);
    machine.dockerProxy = "http://proxy.test:3128";
    expect((await machine.run(flags, { token: token(), publicUrl, env })).output).not.toContain(words);
    machine.dockerProxy = "";
    expect((await machine.run(["--dry-run"])).output).not.toContain(words);
  });

  test("keeps a copy of the CA file and refuses a file without certificates", async () => {
    machine.write("ca.pem", selfSigned().cert);
    const build = { version: VERSION, sha256: { x64: machine.sha256 } };
    const flags = ["--ca-file", machine.path("ca.pem")];
    expect(await machine.run(flags, { token: machine.token(build) })).toMatchObject({ code: 0 });
    expect(machine.read("etc/fairlead/ca.pem")).toBe(machine.read("ca.pem"));
    expect(kept()).toEqual(["FAIRLEAD_DAEMON_CA_FILE=/etc/fairlead/ca.pem"]);
    machine.write("ca.pem", "nothing");
    const { code, output } = await machine.run(flags);
    expect([code, output]).toEqual([1, expect.stringContaining("contains no PEM certificate")]);
  });
});
