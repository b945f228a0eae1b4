import { NO_PROXIES } from "@fairlead/wire/proxy/proxy-rules";
import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

test("only a state folder is required", () => {
  expect(readConfig({ stateDir: "/state" }, {})).toEqual({
    stateDir: "/state",
    runtimeDir: "/run/fairlead-daemon",
    bootstrapTokenFile: null,
    dockerSocket: "/var/run/docker.sock",
    workloadSubnets: "198.19.0.0/16",
    logLevel: "info",
    insecure: false,
    caFile: null,
    proxies: NO_PROXIES,
    trialSeconds: 300,
    serviceManager: { listens: false, watchdogMs: null },
  });
});

test("proxies come from the usual environment variables, and an invalid one is reported without its password", () => {
  const { proxies } = readConfig(
    { stateDir: "/state" },
    { HTTPS_PROXY: "http://me:secret@proxy.test:3128", no_proxy: "intern.test" },
  );
  expect(proxies.find(new URL("wss://platform.test/"))?.url).toBe("http://proxy.test:3128");
  expect(proxies.find(new URL("wss://a.intern.test/"))).toBeNull();
  const read = () => readConfig({}, { https_proxy: "socks5://me:secret@proxy.test" });
  expect(read).toThrow(/--state-dir[^]*HTTPS_PROXY: must be the URL of an HTTP proxy/);
  expect(read).not.toThrow(/secret@proxy\.test$/m);
});

test("a CA file must be given by an absolute path", () => {
  expect(readConfig({ stateDir: "/state" }, { FAIRLEAD_DAEMON_CA_FILE: "/ca.pem" }).caFile).toBe("/ca.pem");
  expect(() => readConfig({ stateDir: "/state", caFile: "ca.pem" }, {})).toThrow("--ca-file: must be an absolute path");
});

test("flags take precedence over the environment, and the environment over systemd's folders", () => {
  const systemd = {
    STATE_DIRECTORY: "/s1:/s2",
    RUNTIME_DIRECTORY: "/r1:/r2",
    CREDENTIALS_DIRECTORY: "/creds",
    NOTIFY_SOCKET: "/run/n",
  };
  expect(readConfig({}, systemd)).toMatchObject({
    stateDir: "/s1",
    runtimeDir: "/r1",
    bootstrapTokenFile: "/creds/bootstrap-token",
    serviceManager: { listens: true, watchdogMs: null },
  });
  const env = {
    ...systemd,
    FAIRLEAD_DAEMON_STATE_DIR: "/e",
    FAIRLEAD_DAEMON_RUNTIME_DIR: "/e/run",
    FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE: "/e/token",
    FAIRLEAD_DAEMON_DOCKER_SOCKET: "/e.sock",
    FAIRLEAD_DAEMON_LOG_LEVEL: "debug",
    FAIRLEAD_DAEMON_INSECURE: "true",
  };
  expect(readConfig({}, env)).toMatchObject({
    stateDir: "/e",
    runtimeDir: "/e/run",
    bootstrapTokenFile: "/e/token",
    dockerSocket: "/e.sock",
    logLevel: "debug",
    insecure: true,
  });
  expect(readConfig({ stateDir: "/f", logLevel: "warn" }, env)).toMatchObject({ stateDir: "/f", logLevel: "warn" });
});

test("all errors are reported together, with the flag's name", () => {
  const read = () =>
    readConfig({ runtimeDir: "run", dockerSocket: "tcp://x", logLevel: "loud" }, { FAIRLEAD_DAEMON_INSECURE: "maybe" });
  for (const name of ["--state-dir", "--runtime-dir", "--docker-socket", "--log-level", "--insecure"])
    expect(read).toThrow(name);
});

test("an empty variable counts as unset", () => {
  const names = ["STATE_DIR", "RUNTIME_DIR", "DOCKER_SOCKET", "LOG_LEVEL", "INSECURE", "TRIAL_SECONDS"];
  const empty = Object.fromEntries(names.map((name) => [`FAIRLEAD_DAEMON_${name}`, ""]));
  const { stateDir, ...defaults } = readConfig({}, { STATE_DIRECTORY: "/s" });
  expect(readConfig({}, { ...empty, STATE_DIRECTORY: "/s" })).toEqual({ stateDir, ...defaults });
});
