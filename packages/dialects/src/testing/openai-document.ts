import { existsSync, readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";

/**
 * OpenAI's own OpenAPI document as a judge. It is no part of this repository (3 MB, of others): fetch `openapi.json` of
 * openai/openai-openapi into `shared/spec/openai-openapi.json` beside the checkout. Without it, tests that need it skip themselves.
 */
const PATH = new URL("../../../../../shared/spec/openai-openapi.json", import.meta.url);

export const hasOpenAiDocument = existsSync(PATH);
export const NEEDS_OPENAI_DOCUMENT = hasOpenAiDocument ? "" : " (needs ../shared/spec/openai-openapi.json)";

type Json = Readonly<Record<string, unknown>>;

interface SchemaNode extends Json {
  readonly properties: Readonly<Record<string, { readonly enum?: readonly string[] }>>;
  readonly allOf?: readonly SchemaNode[];
  readonly $ref?: string;
}

export class OpenAiDocument {
  readonly #ajv = new Ajv({ strict: false, validateFormats: false, discriminator: false });
  readonly #schemas: Readonly<Record<string, SchemaNode>>;
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #eventSchemas = new Map<string, string>();

  constructor() {
    const document = JSON.parse(readFileSync(PATH, "utf8")) as { components: { schemas: Record<string, SchemaNode> } };
    this.#schemas = document.components.schemas;
    this.#ajv.addSchema({ $id: "openai", components: plain(document.components) } as object);
    const union = this.#schemas["ResponseStreamEvent"]?.["anyOf"] as { $ref: string }[];
    for (const { $ref } of union) {
      const name = $ref.split("/").at(-1) ?? "";
      this.#eventSchemas.set(this.#schemas[name]?.properties["type"]?.enum?.[0] ?? "", name);
    }
  }

  /** Names of an object schema's properties, those of its parts too. */
  propertiesOf(name: string): string[] {
    const own = (node: SchemaNode): string[] => [
      ...Object.keys(node.properties ?? {}),
      ...(node.allOf ?? []).flatMap((part) =>
        part.$ref ? this.propertiesOf(part.$ref.split("/").at(-1) ?? "") : own(part),
      ),
    ];
    return own(this.#schemas[name] as SchemaNode);
  }

  /** @returns what is wrong with a value, in one line; empty where nothing is. */
  problems(schema: string, value: unknown): string {
    const validate = this.#compiled.get(schema) ?? this.#ajv.compile({ $ref: `openai#/components/schemas/${schema}` });
    this.#compiled.set(schema, validate);
    return validate(asSent(value)) ? "" : `${schema}: ${this.#ajv.errorsText(validate.errors).slice(0, 400)}`;
  }

  /** The same for an event of a responses stream. */
  eventProblems(event: { readonly type: string }): string {
    const schema = this.#eventSchemas.get(event.type);
    return schema ? this.problems(schema, withoutNullUsage(event)) : `${event.type} is no event of the document`;
  }
}

const asSent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** The document wants an object; the service itself sends null until the end, as Open Responses allows. */
function withoutNullUsage(event: object): unknown {
  const sent = asSent(event) as { response?: { usage?: unknown } };
  if (sent.response?.usage === null) delete sent.response.usage;
  return sent;
}

/**
 * The document mixes `nullable` of 3.0 with the unions of 3.1, and Ajv knows the latter. Its `oneOf`s overlap (a user's message
 * is an EasyInputMessage and an InputMessage), so they are taken as `anyOf`.
 */
function plain(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (typeof node !== "object" || node === null) return node;
  const { discriminator, nullable, ...rest } = node as Json;
  const entries = Object.entries(rest).map(([key, value]) => [key === "oneOf" ? "anyOf" : key, plain(value)]);
  // A property may itself be called that.
  if (typeof discriminator === "object" && discriminator !== null && "type" in discriminator) {
    entries.push(["discriminator", plain(discriminator)]);
  }
  const result = Object.fromEntries(entries) as Json;
  return nullable === true ? { anyOf: [result, { type: "null" }] } : result;
}
