import { existsSync, readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";

/**
 * The provider's API as an OpenAPI document, as a judge of the fake. It is no part of this repository (2 MB, of others): fetch
 * `openapi/hcloud.json` of MaximilianKoestler/hcloud-openapi into `shared/spec/hcloud-openapi.json` beside the checkout.
 * Without it, tests that need it skip themselves.
 */
const PATH = new URL("../../../../../shared/spec/hcloud-openapi.json", import.meta.url);

export const hasDocument = existsSync(PATH);
export const NEEDS_DOCUMENT = hasDocument ? "" : " (needs ../shared/spec/hcloud-openapi.json)";

type Json = Readonly<Record<string, unknown>>;

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Json>> }>>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, ObjectSchema>> };
}

interface ObjectSchema {
  required: string[];
  readonly properties: Record<string, object>;
}

export class HetznerDocument {
  readonly #ajv = new Ajv({ strict: false, validateFormats: false });
  readonly #paths: Document["paths"];
  readonly #compiled = new Map<string, ValidateFunction>();

  constructor() {
    const document = JSON.parse(readFileSync(PATH, "utf8")) as Document;
    bringUpToDate(document);
    this.#paths = document.paths;
    this.#ajv.addSchema({ $id: "hcloud", components: withNull(document.components) } as object);
  }

  /** @param path below `/v1`. @returns what is wrong with an answer, in one line; empty where nothing is. */
  problems(method: string, path: string, answer: { readonly status: number; readonly body: unknown }): string {
    const template = path.replace(/\?.*/, "").replace(/\d+/, "{id}");
    const responses = this.#paths[template]?.[method.toLowerCase()]?.responses;
    const status = answer.status < 400 ? String(answer.status) : `${String(answer.status)[0]}xx`;
    const schema = schemaOf(responses?.[status]);
    if (schema === null) return `${method} ${template} has no answer ${status}`;
    const validate = this.#compiled.get(schema) ?? this.#ajv.compile({ $ref: `hcloud${schema}` });
    this.#compiled.set(schema, validate);
    return validate(answer.body) ? "" : this.#ajv.errorsText(validate.errors).slice(0, 400);
  }
}

/** The document is of 2025: servers have no data centre any more, and a type's locations say whether it can be had there. */
function bringUpToDate({ components }: Document): void {
  const { server, server_type_location: place } = components.schemas;
  if (server === undefined || place === undefined) throw new Error("the document has other schemas");
  server.required = server.required.filter((name) => name !== "datacenter");
  delete server.properties["datacenter"];
  Object.assign(place.properties, { available: { type: "boolean" }, recommended: { type: "boolean" } });
  place.required = ["id", "name", "deprecation", "available", "recommended"];
}

function schemaOf(response: Json | undefined): string | null {
  const content = response?.["content"] as { "application/json"?: { schema: { $ref: string } } } | undefined;
  return content?.["application/json"]?.schema.$ref ?? null;
}

/** `nullable` of OpenAPI 3.0 stands beside an `allOf` too, where Ajv does not see it. */
function withNull(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withNull);
  if (typeof node !== "object" || node === null) return node;
  const { nullable, ...rest } = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withNull(value)]));
  if (typeof nullable !== "boolean") return nullable === undefined ? rest : { nullable, ...rest };
  return nullable ? { anyOf: [rest, { type: "null" }] } : rest;
}
