import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import { NODES_GROUP } from "./model-name.ts";
import { type NameOwner, ProjectNameStore } from "./project-name-store.ts";

/**
 * The namespace of model names in a project: nodes, providers and aliases share it, and platform names are reserved. Writers hold the
 * project's row lock.
 */
export class ProjectNames {
  readonly #reserved: ReadonlySet<string>;

  /** @param platformNames names of the platform's providers. */
  constructor(platformNames: Iterable<string>) {
    this.#reserved = new Set([...platformNames, NODES_GROUP]);
  }

  /** For generating a free name. */
  async taken(transaction: Kysely<Database>, projectId: string): Promise<ReadonlySet<string>> {
    const owners = await new ProjectNameStore(transaction).list(projectId);
    return new Set([...owners.keys(), ...this.#reserved]);
  }

  /** First parts of model names: everything except aliases. */
  async upstreams(transaction: Kysely<Database>, projectId: string): Promise<ReadonlySet<string>> {
    const owners = await new ProjectNameStore(transaction).list(projectId);
    return new Set([...owners].flatMap(([name, owner]) => (owner === "alias" ? [] : [name])).concat(...this.#reserved));
  }

  /**
   * For a chosen name. @param unless the current owner that may keep it.
   * @throws DomainError already_exists
   */
  async requireFree(
    transaction: Kysely<Database>,
    { projectId, name, unless }: { readonly projectId: string; readonly name: string; readonly unless?: NameOwner },
  ): Promise<void> {
    if (this.#reserved.has(name)) throw taken(`The name "${name}" is reserved by the platform`);
    const owner = (await new ProjectNameStore(transaction).list(projectId)).get(name);
    if (owner !== undefined && owner !== unless) throw taken(`This project already has ${OWNERS[owner]} "${name}"`);
  }
}

const OWNERS: Readonly<Record<NameOwner, string>> = {
  node: "a node with the identifier",
  provider: "a provider",
  alias: "an alias",
};

function taken(what: string): DomainError {
  return new DomainError("already_exists", `${what}. Choose another name.`, { param: "name" });
}
