import { parseArgs } from "node:util";
import { FakeHetzner } from "../../fakes/hetzner/src/fake-hetzner.ts";
import { noMachines } from "../../fakes/hetzner/src/machine-starter.ts";
import { ensureDemoImage } from "../../support/docker.ts";
import { RentedMachines } from "./rented-machines.ts";

/**
 * The fake provider for trying things by hand: `node test/systemd/stage/fake-hetzner-program.ts [--port N] [--machines]`, until it is
 * interrupted. Prints what the control plane needs to rent there.
 */
const { values } = parseArgs({
  options: { port: { type: "string", default: "0" }, machines: { type: "boolean", default: false } },
});
if (values.machines) await ensureDemoImage();
const starter = values.machines ? new RentedMachines() : noMachines;
const fake = await FakeHetzner.start({ port: Number(values.port), starter });
const project = fake.addProject("own");
process.stdout.write(`address    ${fake.url}
token      ${fake.addToken(project)}
read-only  ${fake.addToken(project, "read_only")}
`);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void fake.close());
