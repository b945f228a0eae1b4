import { DomainError, type FieldError } from "@fairlead/protocol/errors";
import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";

/** Converts zod errors to a public sentence and the path of the invalid field. */

type Issue = z.core.$ZodIssue;

const MAX_PATH = 200;
const MAX_MESSAGE = 500;

/** Maximum number of errors in a response, since an input may have any number. */
const MAX_ERRORS = 50;
const MAX_SENTENCE = 700;

/** Lists all errors; `param` names the first one. @param rootName name of the whole input, if that is invalid ("body"). */
export function validationError(error: z.core.$ZodError, rootName: string): DomainError {
  // Unknown fields come first, because a misspelled name explains a missing field.
  const ordered = error.issues.toSorted((a, b) => rankOf(a) - rankOf(b));
  const errors = ordered
    .slice(0, MAX_ERRORS)
    .flatMap((issue) => describe(deepest(issue), rootName))
    .slice(0, MAX_ERRORS);
  const [first] = errors;
  if (!first) return new DomainError("invalid_request", "The request is not valid.");
  return new DomainError("invalid_request", sentenceOf(errors), { param: first.param, errors });
}

function rankOf({ code }: Issue): number {
  return code === "unrecognized_keys" ? 0 : 1;
}

/** Lists all errors if that is readable; `errors` has the rest. */
function sentenceOf(errors: readonly FieldError[]): string {
  let text = "";
  for (const { message } of errors) {
    if (text !== "" && text.length + message.length > MAX_SENTENCE) return `${text}; …`;
    text += text === "" ? message : `; ${lowerFirst(message)}`;
  }
  return `${text}.`;
}

/** `["messages", 0, "role"]` → `messages[0].role`. Truncated, because callers may choose the names. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
    if (text.length > MAX_PATH) return `${text.slice(0, MAX_PATH).toWellFormed()}…`;
  }
  return text;
}

/** zod's messages may quote the input. */
function shortened(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE).toWellFormed()}…` : text;
}

/** Parses each part of a request with its zod schema. */
export const zodValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (input: unknown) => {
    const result = parseInput(schema, input);
    if (result.success) return { value: result.data };
    const { issues } = result.error;
    const error = httpPart === "headers" ? new z.ZodError(issues.map(nameHeader)) : result.error;
    return { error: validationError(error, httpPart ?? "request") };
  };
};

/** Node lowercases header names; users know them as `Idempotency-Key`. */
function nameHeader(issue: Issue): Issue {
  const [name, ...rest] = issue.path;
  if (typeof name !== "string") return issue;
  return { ...issue, path: [name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()), ...rest] };
}

/** zod's parse with a clear message for missing values (Fastify passes a missing body as null). */
export function parseInput<T>(schema: z.ZodType<T>, input: unknown): z.ZodSafeParseResult<T> {
  return schema.safeParse(input ?? undefined, {
    error: (issue) => (issue.code === "invalid_type" && issue.input === undefined ? "is missing" : undefined),
  });
}

function describe(issue: Issue, rootName: string): readonly FieldError[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, MAX_ERRORS).map((key) => {
      const field = fieldPath([...issue.path, key]);
      return { param: field, message: `Unknown field \`${field}\`` };
    });
  }
  const param = fieldPath(issue.path) || rootName;
  return [{ param, message: `\`${param}\`: ${lowerFirst(shortened(issue.message))}` }];
}

/** A union only reports "invalid input"; the branch that got furthest has the useful error. */
function deepest(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors.flat().toSorted((a, b) => b.path.length - a.path.length)[0];
  return inner ? deepest({ ...inner, path: [...issue.path, ...inner.path] }) : issue;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
