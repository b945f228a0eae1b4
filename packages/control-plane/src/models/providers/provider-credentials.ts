import type { SealedColumn } from "../../access/auth/sealing/sealed-column.ts";
import type { SecretSealer } from "../../access/auth/sealing/sealer.ts";
import type { ProviderRecord } from "./provider.ts";

type Owner = Pick<ProviderRecord, "projectId" | "name" | "baseUrl">;

/** A credential is sealed to its base URL and cannot be opened for another one, no matter who changed the row (decisions/0018). */
export class ProviderCredentials {
  readonly #sealer: SecretSealer;

  constructor(sealer: SecretSealer) {
    this.#sealer = sealer;
  }

  seal(owner: Owner, credential: string): Promise<string> {
    return this.#sealer.seal(Buffer.from(credential), credentialContext(owner));
  }

  /** @returns null if there is none. @throws UnsealError */
  async open(record: ProviderRecord): Promise<string | null> {
    if (record.sealedCredential === null) return null;
    return Buffer.from(await this.#sealer.open(record.sealedCredential, credentialContext(record))).toString();
  }
}

/** The context that a provider's credential is sealed with. */
export function credentialContext({ projectId, name, baseUrl }: Owner): string {
  return `provider credential ${projectId} ${name} ${baseUrl}`;
}

/** The columns of this room that the master key seals. */
export const SEALED_CREDENTIALS: readonly SealedColumn[] = [
  {
    table: "provider",
    column: "sealed_credential",
    key: ["project_id", "name"],
    also: ["base_url"],
    contextOf: ({ project_id: projectId = "", name = "", base_url: baseUrl = "" }) =>
      credentialContext({ projectId, name, baseUrl }),
  },
];
