import {
  ANSWER_HEADERS,
  ERROR_SCHEMA,
  errorResponses,
  OAUTH_ERROR_RESPONSES,
  OAUTH_ERROR_SCHEMA,
  REQUEST_ID_HEADER,
} from "@fairlead/hosting/errors/error-responses";
import type { ErrorCode } from "@fairlead/protocol/errors";
import swagger from "@fastify/swagger";
import type { RouteOptions } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import type { PrincipalKind } from "../access/auth/principal.ts";
import type { HttpApp } from "./http-app.ts";
import { principalKindsOf } from "./requests/require-principal.ts";

/** `/openapi.json`, generated from the schemas and guards of the routes of this host. */

declare module "fastify" {
  interface FastifySchema {
    /** Error codes of this route beyond those of its guard and schemas. */
    errors?: readonly ErrorCode[];
    /** Its errors have the form of RFC 6749 (decisions/0010). */
    oauthErrors?: boolean;
    /** Statuses that differ from the rest of this host. */
    errorStatus?: (code: ErrorCode) => number;
    /** Response headers beyond those of every response. */
    answerHeaders?: Readonly<Record<string, unknown>>;
  }
}

type Json = Record<string, unknown>;

export interface ApiDocumentOptions {
  /** Routes of this host. */
  readonly publicUrl: string;
  /** Path items of the inference host, which does not use the framework. */
  readonly inferencePaths: Readonly<Json>;
}

const SCHEMES: Readonly<Record<PrincipalKind, string>> = { user: "sessionToken", node: "nodeIdentityToken" };

const bearer = (description: string, bearerFormat: string): Json => ({
  type: "http",
  scheme: "bearer",
  bearerFormat,
  description,
});

const SECURITY_SCHEMES: Json = {
  sessionToken: bearer("A user's session token: a signed JWT. Platform host.", "JWT"),
  nodeIdentityToken: bearer("A node's identity token: a signed JWT that its daemon renews. Platform host.", "JWT"),
  bootstrapToken: bearer(
    "A bootstrap token enrolls one daemon as one node. It can be used once, within 30 minutes. Platform host.",
    "flb_…",
  ),
  projectKey: bearer("A project key. Inference host.", "flk_…"),
  workerToken: bearer(
    "A worker-plane token of a workload or agent: a signed JWT that its daemon renews. Inference host.",
    "JWT",
  ),
};

const INTRODUCTION =
  "Projects, keys and nodes on the platform host; models on the inference host. All error responses have the same body (`Error`). " +
  "Nodes may gain fields beyond those listed; clients must ignore fields they do not know.";

const ALWAYS: readonly ErrorCode[] = ["internal", "unavailable"];
const WITH_BODY: readonly ErrorCode[] = ["malformed_json", "request_too_large", "unsupported_media_type"];
const WITH_CREDENTIAL: readonly ErrorCode[] = ["invalid_credential", "expired_credential"];

/** Call before the routes. */
export function registerApiDocument(app: HttpApp, options: ApiDocumentOptions): void {
  const finish = createJsonSchemaTransformObject({});
  void app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      // docs/interface.md §9: the description of the chat interface has version 1.0.0, and there is one document.
      info: { title: "Fairlead", version: "1.0.0", description: INTRODUCTION, license: { name: "Apache-2.0" } },
      servers: [{ url: options.publicUrl, description: "Platform host" }],
      components: { securitySchemes: SECURITY_SCHEMES as never },
    },
    transform: describeRoute as never,
    transformObject: (document) => complete(finish(document as never) as unknown as Json, options) as never,
  });
}

/** The route of the document itself; call inside the scope of the routes. */
export function registerApiDocumentRoute(app: HttpApp): void {
  app.get(
    "/openapi.json",
    {
      schema: {
        summary: "Get this document",
        operationId: "getApiDocument",
        tags: ["Server"],
        response: { 200: z.record(z.string(), z.unknown()) },
      },
    },
    async (_request, reply) => {
      void reply.header("cache-control", "public, max-age=60");
      return { ...app.swagger() };
    },
  );
}

const describeSchemas = createJsonSchemaTransform({});

interface RouteToDescribe {
  readonly schema: RouteOptions["schema"];
  readonly url: string;
  readonly route: RouteOptions;
}

function describeRoute(routeToDescribe: RouteToDescribe): unknown {
  const { schema = {}, url, route } = routeToDescribe;
  if (schema.hide === true) return { schema, url };
  const { errors = [], oauthErrors = false, errorStatus, answerHeaders = {}, ...rest } = schema;
  const guards = principalKindsOf(route.onRequest);
  const security = rest.security ?? guards.map((kind) => ({ [SCHEMES[kind]]: [] }));
  const judged = rest.body ?? rest.params ?? rest.querystring ?? rest.headers;
  const codes: ErrorCode[] = [
    ...(judged === undefined ? [] : (["invalid_request"] as const)),
    ...(rest.body === undefined ? [] : WITH_BODY),
    ...(security.length === 0 ? [] : WITH_CREDENTIAL),
    ...errors,
    ...ALWAYS,
  ];
  const telling = { status: errorStatus, headers: { ...ANSWER_HEADERS, ...answerHeaders } };
  const failures = oauthErrors ? OAUTH_ERROR_RESPONSES : errorResponses([...new Set(codes)], telling);
  const described = { ...rest, security, "x-failures": failures, "x-answer-headers": answerHeaders };
  return describeSchemas({ ...routeToDescribe, schema: described } as never);
}

function complete(document: Json, options: ApiDocumentOptions): Json {
  const paths = { ...(document["paths"] as Json), ...options.inferencePaths };
  for (const item of Object.values(document["paths"] as Json)) {
    for (const operation of Object.values(item as Json)) completeOperation(operation as Json);
  }
  const components = document["components"] as Json;
  const schemas: Json = { Error: ERROR_SCHEMA, OAuthError: OAUTH_ERROR_SCHEMA, ...(components["schemas"] as Json) };
  for (const [name, schema] of Object.entries(schemas)) if (!name.endsWith("Input")) allowMoreFields(schema);
  return {
    ...document,
    paths,
    components: { ...components, headers: { RequestId: REQUEST_ID_HEADER }, schemas: usedOnly(schemas, paths) },
  };
}

function completeOperation(operation: Json): void {
  const { "x-failures": failures, "x-answer-headers": own, ...rest } = operation;
  const answers = rest["responses"] as Record<string, Json>;
  for (const answer of Object.values(answers)) {
    allowMoreFields(answer);
    answer["headers"] = { ...ANSWER_HEADERS, ...(own as Json) };
    answer["description"] = "The response.";
  }
  // The framework treats every body as required.
  const body = rest["requestBody"] as RequestBody | undefined;
  if (body) body.required = !Object.values(body.content).some(({ schema }) => mayBeAbsent(schema));
  operation["responses"] = { ...answers, ...(failures as Json) };
  delete operation["x-failures"];
  delete operation["x-answer-headers"];
}

interface RequestBody {
  required: boolean;
  readonly content: Readonly<Record<string, { readonly schema: BodySchema }>>;
}

interface BodySchema {
  readonly default?: unknown;
  readonly anyOf?: readonly { readonly type?: string }[];
}

/** A missing body arrives as null; only the body itself matters, not its fields. */
function mayBeAbsent({ default: byDefault, anyOf = [] }: BodySchema): boolean {
  return byDefault !== undefined || anyOf.some(({ type }) => type === "null");
}

/** docs/interface.md §9: responses may gain fields, so their schemas must allow unknown ones. */
function allowMoreFields(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  if ("additionalProperties" in schema && schema.additionalProperties === false) delete schema.additionalProperties;
  for (const inner of Object.values(schema)) allowMoreFields(inner);
}

/** Each named schema exists as input and output; only referenced ones are kept. */
function usedOnly(schemas: Readonly<Json>, paths: Readonly<Json>): Json {
  const used = new Set<string>();
  const visit = (part: unknown): void => {
    for (const [, name = ""] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(schemas[name]);
    }
  };
  visit(paths);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
}
