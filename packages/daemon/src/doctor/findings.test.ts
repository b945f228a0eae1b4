import { describe, expect, test } from "vitest";
import {
  architectureCheck,
  clockCheck,
  diskCheck,
  dockerCheck,
  gpuCheck,
  networkCheck,
  platformCheck,
  proxyCheck,
  secretsCheck,
  systemCheck,
  systemdCheck,
} from "./findings.ts";

const GIB = 1024 ** 3;
const answer = { url: "https://p", status: 200, skewMs: 0 };

describe("the doctor", () => {
  test.each([
    ["Linux", systemCheck("linux", "Debian 12"), "ok", "Debian 12"],
    ["an unsupported system", systemCheck("darwin", "macOS"), "problem", "Linux"],
    ["a common architecture", architectureCheck("arm64"), "ok", "arm64"],
    ["a rare architecture", architectureCheck("riscv64"), "warning", "riscv64"],
    ["no systemd", systemdCheck(false), "warning", "restart the daemon"],
    ["Docker", dockerCheck("20.10.5", null), "ok", "20.10.5"],
    ["Docker 20.9, which is older than 20.10", dockerCheck("20.9.0", null), "problem", "too old"],
    ["an old Docker", dockerCheck("19.03.1", null), "problem", "20.10 or newer"],
    ["no Docker", dockerCheck("", "connect ENOENT"), "problem", "install Docker"],
    ["a Docker socket without permission", dockerCheck("", "connect EACCES"), "problem", "group docker"],
    ["iptables", networkCheck(""), "ok", "can be installed"],
    ["no iptables", networkCheck("sh: iptables: not found"), "problem", "install iptables"],
    ["network rules without Docker", networkCheck(null), "skipped", "Docker"],
    ["a full disk", diskCheck("/d", { totalBytes: 100 * GIB, freeBytes: GIB / 2 }), "problem", "must stay free"],
    ["enough disk space", diskCheck("/d", { totalBytes: 100 * GIB, freeBytes: 50 * GIB }), "ok", "50.0 GiB free in /d"],
    ["secrets in a tmpfs", secretsCheck("/run/x", true), "ok", "in memory"],
    ["secrets on a disk", secretsCheck("/run/x", false), "warning", "tmpfs"],
    ["the platform", platformCheck(answer), "ok", "is reachable"],
    ["another program at the platform's URL", platformCheck({ ...answer, status: 404 }), "problem", "404"],
    ["an unreachable platform", platformCheck("cannot be reached"), "problem", "cannot be reached"],
    ["no platform", platformCheck(null), "skipped", "--platform-url"],
    ["a correct clock", clockCheck({ ...answer, skewMs: 900 }), "ok", "in sync"],
    ["a clock an hour ahead", clockCheck({ ...answer, skewMs: 3_600_000 }), "problem", "3600 s ahead"],
    ["a clock that cannot be compared", clockCheck(null), "skipped", "platform"],
    ["no proxy", proxyCheck(null, false), "ok", "none"],
    ["a proxy for Docker only", proxyCheck(null, true), "ok", "Docker uses one"],
    ["a proxy that Docker does not use", proxyCheck("http://p:3128", false), "warning", "Docker does not use a proxy"],
    ["a proxy for both", proxyCheck("http://p:3128", true), "ok", "http://p:3128; Docker uses one too"],
    ["a proxy without Docker", proxyCheck("http://p:3128", null), "ok", "http://p:3128"],
    ["no GPU", gpuCheck({ state: "absent" }), "ok", "none"],
    ["a broken driver", gpuCheck({ state: "broken", reason: "mismatch" }), "problem", "mismatch"],
    [
      "a GPU",
      gpuCheck({ state: "present", gpus: [{ id: "0", name: "NVIDIA L4", memoryMb: 23_034 }] }),
      "ok",
      "NVIDIA L4, 23034 MiB",
    ],
  ] as const)("finds %s", (...row) => {
    const [, { level, message }, expected, words] = row;
    expect([level, message]).toEqual([expected, expect.stringContaining(words)]);
  });
});
