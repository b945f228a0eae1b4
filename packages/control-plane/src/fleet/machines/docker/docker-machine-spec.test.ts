import { describe, expect, test } from "vitest";
import { parseTarHeader, TAR_BLOCK, tarPadding } from "../../../installation/backup/tar.ts";
import { machineContainer, machineFiles, secretsVolume } from "./docker-machine-spec.ts";

const SPEC = {
  name: "fairlead-x",
  image: "machine:1",
  labels: { "dev.fairlead.machine": "mrq_1" },
  engineSocket: "/run/other.sock",
  secrets: { volume: "fairlead-x-secrets", path: "/var/lib/docker/volumes/fairlead-x-secrets/_data" },
};

function filesIn(archive: Buffer): Record<string, string> {
  const files: Record<string, string> = {};
  let at = 0;
  for (;;) {
    const entry = parseTarHeader(archive.subarray(at, at + TAR_BLOCK));
    if (entry === null) return files;
    at += TAR_BLOCK;
    files[entry.name] = archive.toString("utf8", at, at + entry.bytes);
    at += entry.bytes + tarPadding(entry.bytes);
  }
}

describe("a machine in Docker", () => {
  test("uses the host's Docker engine and network, and is not privileged", () => {
    const { HostConfig } = machineContainer(SPEC) as { HostConfig: Record<string, unknown> };
    expect(HostConfig).toMatchObject({ NetworkMode: "host", CapAdd: ["SYS_ADMIN"] });
    expect(HostConfig["Binds"]).toContain("/run/other.sock:/var/run/docker.sock");
    expect(HostConfig).not.toHaveProperty("Privileged");
  });

  test("keeps decrypted secrets on a tmpfs, at the path that its daemon uses, both inside and outside", () => {
    const { HostConfig } = machineContainer(SPEC) as { HostConfig: { Binds: string[] } };
    expect(HostConfig.Binds).toContain(`${SPEC.secrets.volume}:${SPEC.secrets.path}`);
    expect(secretsVolume(SPEC)).toMatchObject({
      Name: SPEC.secrets.volume,
      DriverOpts: { type: "tmpfs", o: "mode=0700" },
    });
    const files = filesIn(machineFiles("#!/bin/sh\n", SPEC.secrets.path, 0));
    const told = files["etc/systemd/system/fairlead-daemon.service.d/secrets.conf"];
    expect(told).toContain(`FAIRLEAD_DAEMON_RUNTIME_DIR=${SPEC.secrets.path}\nReadWritePaths=${SPEC.secrets.path}\n`);
  });

  test("gets its user data byte for byte, and runs it only at its first start", () => {
    const userData = `#!/bin/sh\necho '${"ü€".repeat(300)}' "$(date)"\n`;
    const files = filesIn(machineFiles(userData, SPEC.secrets.path, 1_800_000_000));
    expect(files["var/lib/fairlead-machine/user-data"]).toBe(userData);
    expect(files["etc/systemd/system/multi-user.target.d/user-data.conf"]).toContain(
      "Wants=fairlead-user-data.service",
    );
    const unit = files["etc/systemd/system/fairlead-user-data.service"];
    expect(unit).toContain("ConditionPathExists=/var/lib/fairlead-machine/user-data");
    expect(unit).toContain("ExecStartPre=/bin/mv /var/lib/fairlead-machine/user-data");
  });
});
