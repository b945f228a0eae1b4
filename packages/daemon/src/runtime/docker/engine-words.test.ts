import { describe, expect, test } from "vitest";
import { engineWords, pullWords } from "./engine-words.ts";

const PULLED = { image: "ghcr.io/example/engine:2", registry: "ghcr.io", withLogin: false };

/** Messages of Docker 20.10 to 29, with and without the containerd image store. */
describe("a pull that failed", () => {
  test.each([
    ["manifest unknown", "ghcr.io/example/engine:2 was not found in the registry ghcr.io"],
    [
      "manifest for ghcr.io/example/engine:2 not found: manifest unknown: OCI index found, but accept header does not support OCI indexes",
      "ghcr.io/example/engine:2 was not found in the registry ghcr.io",
    ],
    [
      'failed to resolve reference "ghcr.io/example/engine:2": ghcr.io/example/engine:2: not found',
      "ghcr.io/example/engine:2 was not found in the registry ghcr.io",
    ],
    [
      "pull access denied for example/engine, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
      "access to ghcr.io/example/engine:2 was denied: the repository does not exist, or it may need a login; set `registryAuthSecret`",
    ],
    [
      'Head "https://ghcr.io/v2/example/engine/manifests/2": unauthorized',
      "the registry ghcr.io denied access to ghcr.io/example/engine:2; it may need a login; set `registryAuthSecret`",
    ],
    [
      'Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.53:53: no such host',
      "cannot reach the registry ghcr.io: cannot resolve its name",
    ],
    [
      'Get "https://ghcr.io/v2/": dial tcp 192.0.2.1:443: connect: connection refused',
      "cannot reach the registry ghcr.io: connection refused",
    ],
    [
      'Get "https://ghcr.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)',
      "cannot reach the registry ghcr.io: timeout",
    ],
    [
      'Get "https://ghcr.io/v2/": dial tcp 192.0.2.1:443: connect: no route to host',
      "cannot reach the registry ghcr.io: no route to host",
    ],
    ["unexpected EOF", "cannot reach the registry ghcr.io: the connection was closed"],
    [
      'Get "https://ghcr.io/v2/": x509: certificate signed by unknown authority',
      "this node does not trust the certificate of the registry ghcr.io",
    ],
    [
      'Get "https://ghcr.io/v2/": http: server gave HTTP response to HTTPS client',
      "the registry ghcr.io uses plain HTTP, which Docker on this node does not allow",
    ],
    ["toomanyrequests: You have reached your pull rate limit.", "the rate limit of the registry ghcr.io is reached"],
    [
      "no matching manifest for linux/arm64/v8 in the manifest list entries",
      "ghcr.io/example/engine:2 is not available for this node's processor architecture (linux/arm64/v8)",
    ],
    ["write /var/lib/docker/tmp/x: no space left on device", "the disk of this node is full"],
    [
      'error parsing HTTP 404 response body: unexpected end of JSON input: ""',
      "ghcr.io is not a container registry or does not have ghcr.io/example/engine:2",
    ],
    ["something new", "something new"],
  ])("%s", (said, words) => {
    expect(pullWords(said, PULLED)).toBe(words);
  });

  test("with a login suggests checking the login", () => {
    const words = pullWords("unauthorized: authentication required", { ...PULLED, withLogin: true });
    expect(words).toBe(
      "the registry ghcr.io denied access to ghcr.io/example/engine:2; check the login in `registryAuthSecret`",
    );
  });
});

const RUNC =
  "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: ";

describe("a container that does not start", () => {
  test.each([
    [
      `${RUNC}exec: "/no/such": stat /no/such: no such file or directory: unknown`,
      'the command "/no/such" was not found in the image',
    ],
    [
      `${RUNC}exec: "nosuch": executable file not found in $PATH: unknown`,
      'the command "nosuch" was not found in the image',
    ],
    [`${RUNC}exec: "/": permission denied: unknown`, 'the image\'s command "/" cannot be executed: permission denied'],
    [`${RUNC}exec: "/": is a directory: unknown`, 'the image\'s command "/" cannot be executed: permission denied'],
    [`${RUNC}exec /bin/x: exec format error`, "the image is built for a different processor architecture"],
    ["No command specified", "the image has no default command; set `command`"],
    ["no command specified", "the image has no default command; set `command`"],
    [
      'could not select device driver "nvidia" with capabilities: [[gpu]]',
      "Docker on this node cannot use GPUs; install the NVIDIA Container Toolkit",
    ],
    [
      `${RUNC}can't start init: fork/exec /proc/self/exe: resource temporarily unavailable: unknown`,
      "process limit reached on this node: cannot start a new process",
    ],
    [
      `${RUNC}exec: "docker-init": executable file not found in $PATH: unknown`,
      "Docker's init program (docker-init) is missing on this node; install it or set `init: false`",
    ],
    [
      `${RUNC}error mounting "/run/x" to rootfs at "/x": stat /run/x: no such file or directory: unknown`,
      `${RUNC}error mounting "/run/x" to rootfs at "/x": stat /run/x: no such file or directory: unknown`,
    ],
    ["No such image: example/engine:1", "its image is no longer on this node"],
    ["something new", "something new"],
  ])("%s", (said, words) => {
    expect(engineWords(said)).toBe(words);
  });
});
