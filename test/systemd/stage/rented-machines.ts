import type { MachineStarter, NewMachine } from "../../fakes/hetzner/src/machine-starter.ts";
import { docker } from "../../support/docker.ts";
import { Box } from "./box.ts";

const USER_DATA = "/var/lib/cloud/instance/user-data.txt";

/** Debian machines behind the servers of a fake provider, which run their user data once as cloud-init does. */
export class RentedMachines implements MachineStarter {
  readonly #boxes = new Map<number, Promise<Box>>();

  async start(machine: NewMachine): Promise<string> {
    const booting = Box.boot("bookworm", machine.name);
    this.#boxes.set(machine.id, booting);
    const box = await booting;
    await runUserData(box, machine.userData);
    return docker("inspect", "--format", "{{.NetworkSettings.Networks.bridge.IPAddress}}", box.id);
  }

  async remove(id: number): Promise<void> {
    const box = await this.#boxes.get(id)?.catch(() => null);
    await box?.remove();
    this.#boxes.delete(id);
  }

  /** Those that have not been removed, once they are up. */
  boxes(): Promise<readonly Box[]> {
    return Promise.all(this.#boxes.values());
  }
}

/** Of what cloud-init takes the plain form alone: a script with its interpreter. It goes on after this has returned. */
async function runUserData(box: Box, userData: string): Promise<void> {
  if (userData === "") return;
  if (!userData.startsWith("#!")) throw new Error("the stand-in for cloud-init runs scripts that begin with #! alone");
  const bytes = Buffer.from(userData).toString("base64");
  await box.run(`install -d -m 0700 /var/lib/cloud/instance
echo ${bytes} | base64 -d >${USER_DATA}
chmod 0700 ${USER_DATA}
systemd-run --unit=cloud-final --quiet ${USER_DATA}`);
}
