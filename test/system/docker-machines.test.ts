import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DockerMachines } from "../../packages/control-plane/src/fleet/machines/docker/docker-machines.ts";
import { machineProviderContract } from "../../packages/control-plane/src/fleet/machines/machine-provider.contract.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { describeWithDocker, docker } from "../support/docker.ts";

const run = promisify(execFile);
const SOCKET = "/var/run/docker.sock";
const TAG = `fairlead-test/no-systemd:${process.pid}`;

/** Where systemd stands in the real image, something that only stays. */
const STAYS = `#!/bin/sh
trap 'exit 0' TERM RTMIN+3
while :; do sleep 1; done
`;

/** As little of a Debian root as a machine of the provider boots on. */
async function makeImage(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-no-systemd-"));
  for (const folder of ["bin", "lib/systemd", "etc/systemd/system", "var/lib", "proc", "sys", "tmp", "run"]) {
    mkdirSync(join(dir, folder), { recursive: true });
  }
  cpSync("/bin/busybox", join(dir, "bin/busybox"));
  for (const tool of ["sh", "mount", "ln", "sleep"]) symlinkSync("busybox", join(dir, "bin", tool));
  writeFileSync(join(dir, "lib/systemd/systemd"), STAYS);
  chmodSync(join(dir, "lib/systemd/systemd"), 0o755);
  await run("sh", ["-c", `tar -C ${dir} -c . | docker import - ${TAG}`]);
  rmSync(dir, { recursive: true });
}

function machinesOf(installationId: string, image = TAG): DockerMachines {
  return new DockerMachines({ socketPath: SOCKET, image, installationId, clock: systemClock });
}

describeWithDocker("machines in Docker", () => {
  const installation = `ins_test_${process.pid}`;
  const request = {
    label: "mrq_x",
    name: `machine-${process.pid}`,
    type: "debian-12",
    location: "local",
    userData: "#!/bin/sh\n",
  };

  beforeAll(makeImage);
  afterAll(() => docker("rmi", "--force", TAG));

  machineProviderContract("Docker", async () => ({
    provider: machinesOf(installation),
    neighbour: machinesOf(`${installation}_neighbour`),
    token: "",
    type: "debian-12",
    location: "local",
    missingId: "0".repeat(64),
    close: async () => {
      expect(await docker("ps", "-aq", "--filter", `label=dev.fairlead.machine.installation=${installation}`)).toBe("");
      expect(
        await docker("volume", "ls", "-q", "--filter", `label=dev.fairlead.machine.installation=${installation}`),
      ).toBe("");
    },
  }));

  test("are refused when their image is missing, with the way to build it, and leave nothing behind", async () => {
    const provider = machinesOf(installation, "fairlead-test/no-such-image:1");
    await expect(provider.create("", request)).rejects.toMatchObject({
      kind: "bad_input",
      providerWords: expect.stringMatching(/No such image.*scripts\/build-machine-image/s),
    });
    expect(await provider.findByLabel("", null)).toEqual([]);
    expect(
      await docker("volume", "ls", "-q", "--filter", `label=dev.fairlead.machine.installation=${installation}`),
    ).toBe("");
  });

  test("are not given up when Docker does not respond", async () => {
    const provider = new DockerMachines({
      socketPath: "/nonexistent/docker.sock",
      image: TAG,
      installationId: installation,
      clock: systemClock,
    });
    for (const call of [
      provider.plans(),
      provider.create("", request),
      provider.get("", "x"),
      provider.delete("", "x"),
      provider.findByLabel("", null),
    ]) {
      await expect(call).rejects.toMatchObject({
        kind: "unavailable",
        providerWords: expect.stringContaining("does not respond"),
      });
    }
  });

  test("do not include other containers, which are never removed", async () => {
    const id = await docker("create", "--name", `stranger-${process.pid}`, TAG, "sh");
    try {
      const provider = machinesOf(installation);
      expect(await provider.get("", id)).toBeNull();
      await provider.delete("", id);
      expect(await docker("inspect", "-f", "{{.Id}}", id)).toBe(id);
    } finally {
      await docker("rm", "--force", id);
    }
  });

  test("are reported as failed when they stopped or were never started", async () => {
    const provider = machinesOf(installation);
    const { id } = await provider.create("", request);
    await docker("stop", "--time", "1", id);
    expect(await provider.get("", id)).toMatchObject({
      state: "failed",
      ip: null,
      failure: expect.stringMatching(/^its container exited with \d+/),
    });
    await provider.delete("", id);
    const label = `dev.fairlead.machine.installation=${installation}`;
    const unstarted = await docker("create", "--label", label, "--name", request.name, TAG, "sh");
    expect(await provider.get("", unstarted)).toMatchObject({
      state: "failed",
      label: "",
      failure: expect.stringContaining("never started"),
    });
    await provider.delete("", unstarted);
    expect(await provider.get("", unstarted)).toBeNull();
  });

  test("do not expose user data in labels, variables or arguments", async () => {
    const provider = machinesOf(installation);
    const { id } = await provider.create("", { ...request, userData: "#!/bin/sh\n# flb_secret\n" });
    expect(await docker("inspect", id)).not.toContain("flb_secret");
    await provider.delete("", id);
  });
});
