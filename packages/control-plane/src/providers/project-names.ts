import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { NODES_GROUP } from "./model-name.ts";
import { type NameOwner, ProjectNameStore } from "./project-name-store.ts";

/**
 * What the first part of a model's name may mean in a project, and an alias: nodes, providers and aliases share one namespace, and the
 * platform's names are reserved in it (design §4). Whoever takes a name holds the project's row meanwhile, so that nobody else can.
 */
export class ProjectNames {
  readonly #reserved: ReadonlySet<string>;

  /** @param platformNames of the platform's providers. */
  constructor(platformNames: Iterable<string>) {
    this.#reserved = new Set([...platformNames, NODES_GROUP]);
  }

  /** For whoever picks a free one. */
  async taken(transaction: Kysely<Database>, projectId: string): Promise<ReadonlySet<string>> {
    const owners = await new ProjectNameStore(transaction).list(projectId);
    return new Set([...owners.keys(), ...this.#reserved]);
  }

  /** What a model's name may begin with: all but the aliases. */
  async upstreams(transaction: Kysely<Database>, projectId: string): Promise<ReadonlySet<string>> {
    const owners = await new ProjectNameStore(transaction).list(projectId);
    return new Set([...owners].flatMap(([name, owner]) => (owner === "alias" ? [] : [name])).concat(...this.#reserved));
  }

  /**
   * For whoever wants this one. @param unless what may hold it already.
   * @throws DomainError already_exists
   */
  async requireFree(
    transaction: Kysely<Database>,
    { projectId, name, unless }: { readonly projectId: string; readonly name: string; readonly unless?: NameOwner },
  ): Promise<void> {
    if (this.#reserved.has(name)) throw taken(`The name "${name}" is the platform's own`);
    const owner = (await new ProjectNameStore(transaction).list(projectId)).get(name);
    if (owner !== undefined && owner !== unless) throw taken(`This project has ${OWNERS[owner]} "${name}"`);
  }
}

const OWNERS: Readonly<Record<NameOwner, string>> = {
  node: "a node with the identifier",
  provider: "a provider",
  alias: "an alias",
};

function taken(what: string): DomainError {
  return new DomainError("already_exists", `${what}; take another name.`, { param: "name" });
}
