export interface NewMachine {
  /** The server's id at the fake. */
  readonly id: number;
  readonly name: string;
  /** Run once by what stands in for cloud-init. */
  readonly userData: string;
}

/** What stands behind a server of the fake. */
export interface MachineStarter {
  /** @returns its IPv4 address, once it has booted; its user data may still be at work. */
  start(machine: NewMachine): Promise<string>;
  /** Leaves nothing of it, whatever state it is in. */
  remove(id: number): Promise<void>;
}

/** Servers that are rows and nothing more. Their addresses are of the block for documentation (RFC 5737). */
export const noMachines: MachineStarter = {
  start: ({ id }) => Promise.resolve(`198.51.100.${id % 256}`),
  remove: () => Promise.resolve(),
};
