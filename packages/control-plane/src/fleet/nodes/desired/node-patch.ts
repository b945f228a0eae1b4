import { isDeepStrictEqual } from "node:util";
import { type EngineConfig, engineConfigSchema, healthSchema, resourcesSchema } from "@fairlead/protocol/engine-config";
import { DomainError } from "@fairlead/protocol/errors";
import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { nameSchema } from "@fairlead/protocol/values/text";
import { z } from "zod";

/** `PATCH /v1/nodes/{id}` (docs/interface.md §4.4): which fields change, and to what. Pure. */

export interface NodePatch {
  /** The body's `node`, as received. */
  readonly node: Readonly<Record<string, unknown>>;
  /** JSON form of a FieldMask: comma-separated camelCase paths. Null: every writable field that is present. */
  readonly updateMask: string | null;
}

export interface WritableNode {
  readonly name: string;
  readonly engineConfig: EngineConfig | null;
}

export const WRITABLE_FIELDS = ["name", "engineConfig"] as const satisfies readonly (keyof WritableNode)[];

/** They change between a get and a patch, so their values in a patch are ignored. */
const OBSERVED_FIELDS: ReadonlySet<string> = new Set([
  "statusMessage",
  "statusSince",
  "daemonVersion",
  "desiredDaemonVersion",
  "daemonUpdate",
  "lastSeenAt",
  "conditions",
  "workloads",
] satisfies (keyof Node)[]);

type Json = Record<string, unknown>;
/** Null ends a path: the value is replaced as a whole, including maps and lists. */
interface PathTree {
  readonly [field: string]: PathTree | null;
}

const leaves = (fields: readonly string[]): PathTree => Object.fromEntries(fields.map((field) => [field, null]));

const WRITABLE: PathTree = {
  name: null,
  engineConfig: {
    ...leaves(Object.keys(engineConfigSchema.shape)),
    health: leaves(Object.keys(healthSchema.shape)),
    resources: leaves(Object.keys(resourcesSchema.shape)),
  },
};

const patchedSchema = z.object({ name: nameSchema, engineConfig: engineConfigSchema.nullable() });

/** @throws DomainError invalid_request: `updateMask` for a path, `node.…` for a value */
export function patchNode(current: Node, patch: NodePatch): WritableNode {
  const draft: Json = structuredClone({ name: current.name, engineConfig: current.engineConfig });
  if (patch.updateMask === null) mergePresent(draft, current, patch.node);
  else for (const path of parseMask(patch.updateMask)) copyPath(draft, patch.node, path);
  const config = draft["engineConfig"];
  if (config === undefined || isDeepStrictEqual(config, {})) draft["engineConfig"] = null;
  const parsed = patchedSchema.safeParse(draft);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const param = ["node", ...(issue?.path ?? [])].join(".");
  throw new DomainError("invalid_request", `\`${param}\`: ${issue?.message ?? "not valid"}.`, { param });
}

/** For get → change → patch: read-only fields pass if unchanged; unknown ones belong to newer clients. */
function mergePresent(draft: Json, current: Node, node: Readonly<Json>): void {
  for (const [field, value] of Object.entries(node)) {
    if (Object.hasOwn(WRITABLE, field)) draft[field] = value;
    else if (OBSERVED_FIELDS.has(field)) continue;
    else if (isField(field) && !isDeepStrictEqual(current[field], value)) throw readOnly(`node.${field}`, field);
  }
}

function parseMask(mask: string): string[][] {
  const paths = mask.split(",").map((path) => path.trim().split("."));
  for (const path of paths) refuseUnwritable(path);
  return paths;
}

function refuseUnwritable(path: readonly string[]): void {
  const [first = ""] = path;
  if (!Object.hasOwn(WRITABLE, first) && isField(first)) throw readOnly("updateMask", first);
  let tree: PathTree | null = WRITABLE;
  for (const field of path) {
    const next: PathTree | null | undefined = tree && Object.hasOwn(tree, field) ? tree[field] : undefined;
    if (next === undefined) {
      throw new DomainError("invalid_request", `\`updateMask\`: "${path.join(".")}" is not a writable path.`, {
        param: "updateMask",
      });
    }
    tree = next;
  }
}

/** In the mask but absent from the body: the field is reset. */
function copyPath(draft: Json, node: Readonly<Json>, path: readonly string[]): void {
  const value = path.reduce<unknown>((at, field) => (isJson(at) ? at[field] : undefined), node);
  const parents = path.slice(0, -1);
  const last = path.at(-1) ?? "";
  let target = draft;
  for (const field of parents) {
    const next = target[field];
    const child: Json = isJson(next) ? next : {};
    target[field] = child;
    target = child;
  }
  if (value === undefined) delete target[last];
  else target[last] = value;
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isField(field: string): field is keyof Node {
  return Object.hasOwn(nodeSchema.shape, field);
}

function readOnly(param: string, field: string): DomainError {
  return new DomainError("invalid_request", `\`${field}\` cannot be changed.`, { param });
}
