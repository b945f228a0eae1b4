import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { waitFor } from "./wait-for.ts";

const UP_MS = 10_000;

/**
 * A host beyond this machine, in a network namespace, whose port leads to a port of ours: workloads reach other machines, but not
 * the one that they run on. Needs root.
 */
export class OutsideHost {
  /** `198.51.100.6:8000`: what workloads connect to. */
  readonly address: string;
  /** Ours, on the link between the two: what is forwarded to listens there. */
  readonly ourAddress: string;
  readonly #name = `fo${process.pid}`;
  readonly #theirs: string;
  #forwarder: ChildProcess | null = null;

  constructor() {
    const first = (process.pid % 64) * 4;
    this.ourAddress = `198.51.100.${first + 1}`;
    this.#theirs = `198.51.100.${first + 2}`;
    this.address = `${this.#theirs}:8000`;
    const [ours, theirs] = [`${this.#name}a`, `${this.#name}b`];
    ip("netns", "add", this.#name);
    ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", this.#name);
    ip("address", "add", `${this.ourAddress}/30`, "dev", ours);
    ip("link", "set", ours, "up");
    ip("-n", this.#name, "address", "add", `${this.#theirs}/30`, "dev", theirs);
    ip("-n", this.#name, "link", "set", theirs, "up");
  }

  /** @param port of ours that the host's port leads to. */
  async forward(port: number): Promise<void> {
    const program = `require("node:net").createServer((from) => {
      const to = require("node:net").connect(${port}, "${this.ourAddress}");
      from.on("error", () => to.destroy()).pipe(to).on("error", () => from.destroy()).pipe(from);
    }).listen(8000, () => process.stdout.write("up"))`;
    const inside = [`--net=/var/run/netns/${this.#name}`, process.execPath, "-e", program];
    const forwarder = spawn("nsenter", inside, { stdio: ["ignore", "pipe", "inherit"] });
    let isUp = false;
    forwarder.stdout.on("data", () => {
      isUp = true;
    });
    this.#forwarder = forwarder;
    await waitFor("the outside host", UP_MS, async () => isUp);
  }

  close(): void {
    this.#forwarder?.kill("SIGKILL");
    ip("link", "delete", `${this.#name}a`);
    ip("netns", "delete", this.#name);
  }
}

function ip(...args: readonly string[]): void {
  execFileSync("ip", args);
}
