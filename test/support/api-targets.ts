import fc from "fast-check";
import { z } from "zod";

/** The operations of an API document, as targets for tests: a new route is a new target by itself. */

type Json = Readonly<Record<string, unknown>>;
const json = z.record(z.string(), z.unknown());

export interface Target {
  /** `POST /v1/nodes` */
  readonly name: string;
  readonly operationId: string;
  readonly host: "platform" | "inference";
  readonly method: string;
  /** With `{…}` where a parameter stands. */
  readonly path: string;
  readonly query: readonly string[];
  readonly body: Schema | null;
  /** Names of security schemes; none where anybody may call. */
  readonly security: readonly string[];
}

/** The part of JSON Schema that our documents use, with references resolved. */
export interface Schema {
  readonly kinds: readonly string[];
  readonly properties: ReadonlyMap<string, Schema>;
  readonly required: readonly string[];
  readonly closed: boolean;
  readonly items: Schema | null;
  readonly sample: unknown;
}

const operationSchema = z.object({
  operationId: z.string(),
  security: z.array(json).default([]),
  parameters: z.array(z.object({ name: z.string(), in: z.string() })).default([]),
  requestBody: z.object({ content: z.record(z.string(), json) }).optional(),
});
const documentSchema = z.object({
  paths: z.record(z.string(), json),
  components: z.object({ schemas: z.record(z.string(), json) }),
});

const METHODS = new Set(["get", "post", "put", "patch", "delete"]);

export function targetsOf(document: unknown): Target[] {
  const { paths, components } = documentSchema.parse(document);
  return Object.entries(paths).flatMap(([path, item]) => {
    const host = "servers" in item ? "inference" : "platform";
    const whole = host === "inference" ? `/v1${path}` : path;
    return Object.entries(item)
      .filter(([method]) => METHODS.has(method))
      .map(([method, description]) => {
        const { operationId, security, parameters, requestBody } = operationSchema.parse(description);
        const content = requestBody?.content["application/json"];
        return {
          name: `${method.toUpperCase()} ${whole}`,
          operationId,
          host,
          method: method.toUpperCase(),
          path: whole,
          query: parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
          body: content ? readSchema(json.parse(content["schema"]), components.schemas, content["example"]) : null,
          security: security.flatMap(Object.keys),
        } satisfies Target;
      });
  });
}

function readSchema(schema: Json, named: Readonly<Record<string, Json>>, example?: unknown): Schema {
  const reference = schema["$ref"];
  if (typeof reference === "string") return readSchema(named[reference.split("/").at(-1) ?? ""] ?? {}, named, example);
  const choices = z.array(json).optional().parse(schema["anyOf"]);
  if (choices) {
    const schemas = choices.map((choice) => readSchema(choice, named));
    const [first] = schemas;
    if (first) return { ...first, kinds: schemas.flatMap(({ kinds }) => kinds) };
  }
  const properties = new Map(
    Object.entries(json.catch({}).parse(schema["properties"])).map(([name, inner]) => [
      name,
      readSchema(json.parse(inner), named),
    ]),
  );
  const required = z.array(z.string()).catch([]).parse(schema["required"]);
  const items = json.safeParse(schema["items"]);
  const examples = z.array(z.unknown()).catch([]).parse(schema["examples"]);
  return {
    kinds: [schema["type"]].flat().map(String),
    properties,
    required,
    closed: schema["additionalProperties"] === false,
    items: items.success ? readSchema(items.data, named) : null,
    sample: example ?? examples[0] ?? sampleOf(schema, { properties, required }),
  };
}

/** A value that the schema takes. */
function sampleOf(schema: Json, { properties, required }: Pick<Schema, "properties" | "required">): unknown {
  const choices = z
    .array(z.unknown())
    .catch([])
    .parse(schema["enum"] ?? [schema["const"]]);
  if (choices[0] !== undefined) return choices[0];
  const [type] = [schema["type"]].flat();
  if (type === "object") return Object.fromEntries(required.map((name) => [name, properties.get(name)?.sample]));
  if (type === "array") return Number(schema["minItems"] ?? 0) > 0 ? [1] : [];
  if (type === "boolean") return true;
  if (type === "integer" || type === "number") return Number(schema["minimum"] ?? 1);
  const pattern = schema["pattern"];
  if (typeof pattern !== "string" || pattern.includes("\\P")) return "x".repeat(Number(schema["minLength"] ?? 1));
  return fc.sample(fc.stringMatching(new RegExp(pattern)), { seed: 1, numRuns: 1 })[0];
}

export interface Variant {
  readonly what: string;
  /** The field that differs from the sample, as an error names it. */
  readonly param: string;
  readonly body: unknown;
}

/** Every single mistake that can be made with the sample: a wrong type, a missing or an unknown field, at any depth. */
export function mistakesOf(schema: Schema): Variant[] {
  return variants(schema, schema.sample, (part, sample) => {
    const base = json.catch({}).parse(sample);
    const wrong = wrongFor(part);
    return [
      ...(wrong === undefined ? [] : [{ what: "type", param: "", body: wrong }]),
      ...(part.closed ? [{ what: "unknown", param: "zzUnknown", body: { ...base, zzUnknown: 1 } }] : []),
      ...part.required.map((name) => {
        const { [name]: _left, ...rest } = base;
        return { what: "missing", param: name, body: rest };
      }),
    ];
  });
}

/** The sample with each of its texts, at any depth, replaced by each of these. */
export function withTexts(schema: Schema, texts: readonly string[]): Variant[] {
  return variants(schema, schema.sample, ({ kinds }) =>
    kinds.includes("string") ? texts.map((text) => ({ what: "text", param: "", body: text })) : [],
  );
}

/** What `vary` makes of every part of the sample, each set into an otherwise unchanged one. */
function variants(schema: Schema, sample: unknown, vary: (part: Schema, sample: unknown) => Variant[]): Variant[] {
  const own = vary(schema, sample);
  const base = json.catch({}).parse(sample);
  const inner = [...schema.properties].flatMap(([name, property]) =>
    variants(property, base[name] ?? property.sample, vary).map((variant) => ({
      ...variant,
      param: joined(name, variant.param),
      body: { ...base, [name]: variant.body },
    })),
  );
  const items = schema.items
    ? variants(schema.items, schema.items.sample, vary).map((variant) => ({
        ...variant,
        param: joined("[0]", variant.param),
        body: [variant.body],
      }))
    : [];
  return [...own, ...inner, ...items];
}

function joined(path: string, rest: string): string {
  return rest === "" || rest.startsWith("[") ? `${path}${rest}` : `${path}.${rest}`;
}

function wrongFor({ kinds }: Schema): unknown {
  if (kinds.includes("undefined")) return undefined;
  return ["x", 1.5, true, [], {}].find((value) => !kinds.includes(kindOf(value)) && !isNumberFor(kinds, value));
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

function isNumberFor(kinds: readonly string[], value: unknown): boolean {
  return typeof value === "number" && kinds.some((kind) => kind === "integer" || kind === "number");
}
