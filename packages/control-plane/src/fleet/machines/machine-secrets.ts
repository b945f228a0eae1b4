import type { SecretSealer } from "../../access/auth/sealing/sealer.ts";
import { bootstrapContext, type MachineRecord, tokenContext } from "./machine.ts";

/** Credentials of a machine's journal, sealed to the node that they are for (decisions/0030). */
export class MachineSecrets {
  readonly #sealer: SecretSealer;

  constructor(sealer: SecretSealer) {
    this.#sealer = sealer;
  }

  sealToken(nodeId: string, token: string): Promise<string> {
    return this.#sealer.seal(Buffer.from(token), tokenContext(nodeId));
  }

  /** "" where the provider asks for none. @throws UnsealError */
  async openToken({ nodeId, sealedToken }: MachineRecord): Promise<string> {
    return sealedToken === null ? "" : this.#open(sealedToken, tokenContext(nodeId));
  }

  sealBootstrap(nodeId: string, token: string): Promise<string> {
    return this.#sealer.seal(Buffer.from(token), bootstrapContext(nodeId));
  }

  openBootstrap(nodeId: string, sealed: string): Promise<string> {
    return this.#open(sealed, bootstrapContext(nodeId));
  }

  async #open(sealed: string, context: string): Promise<string> {
    return Buffer.from(await this.#sealer.open(sealed, context)).toString();
  }
}
