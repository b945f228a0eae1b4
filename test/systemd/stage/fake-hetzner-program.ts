import { parseArgs } from "node:util";
import { FakeHetzner } from "../../fakes/hetzner/src/fake-hetzner.ts";
import { type Faults, NO_FAULTS } from "../../fakes/hetzner/src/faults.ts";
import { noMachines } from "../../fakes/hetzner/src/machine-starter.ts";
import { ensureDemoImage } from "../../support/docker.ts";
import { whyNoBoxes } from "./box.ts";
import { RentedMachines } from "./rented-machines.ts";

const HELP = `The fake provider for trying things by hand: npx node test/systemd/stage/fake-hetzner-program.ts [options]

Serves a project of the Hetzner Cloud until it is interrupted, and prints its address and tokens, which a control plane rents there with
(docs/provisioning.md).

  --port <n>       where it listens on 127.0.0.1 (default: any free port)
  --machines       servers are Debian containers with systemd, which run their user data (needs root, Docker and debootstrap);
                   without it nothing stands behind them. All of them are removed at the end
  --faults <json>  what goes wrong from the start, by test/fakes/hetzner/src/faults.ts, as '{"noCapacity":["fsn1"]}'
  --help           show this
`;

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    machines: { type: "boolean", default: false },
    faults: { type: "string", default: "{}" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) process.stdout.write(HELP);
else await serve();

async function serve(): Promise<void> {
  const faults = JSON.parse(values.faults) as Partial<Faults>;
  const unknown = Object.keys(faults).find((name) => !(name in NO_FAULTS));
  if (unknown !== undefined)
    return giveUp(`there is no fault "${unknown}"; there are ${Object.keys(NO_FAULTS).join(", ")}`);
  const reason = values.machines ? whyNoBoxes("bookworm") : null;
  if (reason !== null) return giveUp(reason);
  if (values.machines) await ensureDemoImage();
  const starter = values.machines ? new RentedMachines() : noMachines;
  const fake = await FakeHetzner.start({ port: Number(values.port), starter, faults });
  const project = fake.addProject("own");
  process.stdout.write(`address    ${fake.url}
token      ${fake.addToken(project)}
read-only  ${fake.addToken(project, "read_only")}
`);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void fake.close());
}

function giveUp(reason: string): void {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
