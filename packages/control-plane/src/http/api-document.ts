import type { ErrorCode } from "@fairlead/protocol/errors";
import swagger from "@fastify/swagger";
import type { RouteOptions } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import type { PrincipalKind } from "../auth/principal.ts";
import {
  ANSWER_HEADERS,
  ERROR_SCHEMA,
  errorResponses,
  OAUTH_ERROR_RESPONSES,
  OAUTH_ERROR_SCHEMA,
  REQUEST_ID_HEADER,
} from "./error-responses.ts";
import type { HttpApp } from "./http-app.ts";
import { principalKindsOf } from "./require-principal.ts";

/** `/openapi.json`: every route of this host, from the schemas and guards that judge its requests. */

declare module "fastify" {
  interface FastifySchema {
    /** Codes that this route may answer with, beside those that follow from its guard and its schemas. */
    errors?: readonly ErrorCode[];
    /** Its errors have the form of RFC 6749 (decision 0010). */
    oauthErrors?: boolean;
    /** Where its errors have other statuses than elsewhere on this host. */
    errorStatus?: (code: ErrorCode) => number;
    /** Of its answers and its errors, beside those that every answer has. */
    answerHeaders?: Readonly<Record<string, unknown>>;
  }
}

type Json = Record<string, unknown>;

export interface ApiDocumentOptions {
  /** Of this host. */
  readonly publicUrl: string;
  /** Path items of the inference host, which has no framework to ask. */
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
  sessionToken: bearer("A person's session token: a signed JWT. Platform host.", "JWT"),
  nodeIdentityToken: bearer("A node's identity token: a signed JWT that its daemon renews. Platform host.", "JWT"),
  bootstrapToken: bearer("One use, one node, 30 minutes: enrols a daemon. Platform host.", "flb_…"),
  projectKey: bearer("A project key. Inference host.", "flk_…"),
  workerToken: bearer("A workload's or agent's token: a signed JWT that its daemon renews. Inference host.", "JWT"),
};

const INTRODUCTION =
  "Projects, keys and nodes on the platform host; models on the inference host. Every error answer has the same body (`Error`). " +
  "Nodes may gain fields beyond those listed: tolerate them.";

const ALWAYS: readonly ErrorCode[] = ["internal", "unavailable"];
const WITH_BODY: readonly ErrorCode[] = ["malformed_json", "request_too_large", "unsupported_media_type"];
const WITH_CREDENTIAL: readonly ErrorCode[] = ["invalid_credential", "expired_credential"];

/** Call before the routes. */
export function registerApiDocument(app: HttpApp, options: ApiDocumentOptions): void {
  const finish = createJsonSchemaTransformObject({});
  void app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      // Interface §9: the chat interface's description carries 1.0.0, and there is one document.
      info: { title: "Fairlead", version: "1.0.0", description: INTRODUCTION, license: { name: "Apache-2.0" } },
      servers: [{ url: options.publicUrl, description: "Platform host" }],
      components: { securitySchemes: SECURITY_SCHEMES as never },
    },
    transform: describeRoute as never,
    transformObject: (document) => complete(finish(document as never) as unknown as Json, options) as never,
  });
}

/** The document's own route; call inside the scope of the routes. */
export function registerApiDocumentRoute(app: HttpApp): void {
  app.get(
    "/openapi.json",
    {
      schema: {
        summary: "This document",
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
    answer["description"] = "The answer.";
  }
  // The framework's part takes every body for required; one that may be null may be left out.
  const body = rest["requestBody"] as { required: boolean } | undefined;
  if (body && JSON.stringify(body).includes('{"type":"null"}]}')) body.required = false;
  operation["responses"] = { ...answers, ...(failures as Json) };
  delete operation["x-failures"];
  delete operation["x-answer-headers"];
}

/** Interface §9: answers may gain fields, so their schemas must not forbid any. */
function allowMoreFields(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  if ("additionalProperties" in schema && schema.additionalProperties === false) delete schema.additionalProperties;
  for (const inner of Object.values(schema)) allowMoreFields(inner);
}

/** Every named schema is described as input and as output; only what an operation names, by however many steps, is told. */
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
