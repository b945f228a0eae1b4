import { createHash } from "node:crypto";

/** A tool as the caller of `/v1/responses` knows it. */
export interface ToolOrigin {
  readonly kind: "function" | "custom";
  readonly name: string;
  readonly namespace: string | null;
}

/** The longest name of a function in the chat dialect. */
const LONGEST_NAME = 64;
const HASH_CHARACTERS = 8;

/** Names of tools in the chat dialect, which knows no namespaces, and the way back. */
export class ToolNames {
  readonly #origins = new Map<string, ToolOrigin>();
  readonly #names = new Map<string, string>();

  /** @returns the name in the chat dialect. Tools without a namespace keep theirs: add them first. */
  add(origin: ToolOrigin): string {
    const wished = flat(origin.namespace, origin.name);
    let name = wished;
    for (let count = 2; this.#origins.has(name) && origin.namespace !== null; count++) name = `${wished}_${count}`;
    this.#origins.set(name, origin);
    this.#names.set(key(origin.namespace, origin.name), name);
    return name;
  }

  /** History may name a tool that is no longer offered; it gets the name that it would have had. */
  chatName(namespace: string | null, name: string): string {
    return this.#names.get(key(namespace, name)) ?? flat(namespace, name);
  }

  has(kind: ToolOrigin["kind"], name: string): boolean {
    return this.#origins.get(name)?.kind === kind;
  }

  /** A name that no tool has is the model's own invention, and the caller's to judge. */
  origin(chatName: string): ToolOrigin {
    return this.#origins.get(chatName) ?? { kind: "function", name: chatName, namespace: null };
  }
}

const key = (namespace: string | null, name: string): string => JSON.stringify([namespace, name]);

function flat(namespace: string | null, name: string): string {
  if (namespace === null) return name;
  const joined = `${namespace}${namespace.endsWith("_") ? "" : "__"}${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (joined.length <= LONGEST_NAME) return joined;
  const hash = createHash("sha256").update(key(namespace, name)).digest("hex").slice(0, HASH_CHARACTERS);
  return `${joined.slice(0, LONGEST_NAME - HASH_CHARACTERS - 1)}_${hash}`;
}
