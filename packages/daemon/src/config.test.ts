import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

test("a state folder is all that has to be given", () => {
  expect(readConfig({ stateDir: "/state" }, {})).toEqual({
    stateDir: "/state",
    runtimeDir: "/run/fairlead-daemon",
    bootstrapTokenFile: null,
    dockerSocket: "/var/run/docker.sock",
    logLevel: "info",
    insecure: false,
    trialSeconds: 300,
    serviceManager: { listens: false, watchdogMs: null },
  });
});

test("flags win over the environment, the environment over systemd's folders", () => {
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

test("every mistake is told at once, with the flag's name", () => {
  const read = () =>
    readConfig({ runtimeDir: "run", dockerSocket: "tcp://x", logLevel: "loud" }, { FAIRLEAD_DAEMON_INSECURE: "maybe" });
  for (const name of ["--state-dir", "--runtime-dir", "--docker-socket", "--log-level", "--insecure"])
    expect(read).toThrow(name);
});
