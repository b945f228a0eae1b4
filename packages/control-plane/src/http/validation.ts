import { DomainError } from "@fairlead/protocol/errors";
import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";

/** Turns what zod says into one public sentence and the path of the field at fault (design §4). */

type Issue = z.core.$ZodIssue;

/** @param rootName what to call the input where the whole of it is wrong ("body"). */
export function validationError(error: z.core.$ZodError, rootName: string): DomainError {
  const misspelt = error.issues.filter(({ code }) => code === "unrecognized_keys");
  // A misspelt name explains the missing one; the other way round it would have to be guessed.
  const issue = deepest(misspelt.length > 0 ? misspelt : error.issues);
  if (!issue) return new DomainError("invalid_request", "The request is not valid.");
  const { path, message } = describe(issue, rootName);
  const more = error.issues.length - 1;
  const others = more > 0 ? ` (and ${more} more ${more === 1 ? "mistake" : "mistakes"})` : "";
  return new DomainError("invalid_request", `${message}${others}.`, { param: path });
}

/** `["messages", 0, "role"]` → `messages[0].role`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** Parses each part of a request by its zod schema. */
export const zodValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (input: unknown) => {
    const result = parseInput(schema, input);
    if (result.success) return { value: result.data };
    const { issues } = result.error;
    const error = httpPart === "headers" ? new z.ZodError(issues.map(nameHeader)) : result.error;
    return { error: validationError(error, httpPart ?? "request") };
  };
};

/** Node hands headers over in lower case; people know them as `Idempotency-Key`. */
function nameHeader(issue: Issue): Issue {
  const [name, ...rest] = issue.path;
  if (typeof name !== "string") return issue;
  return { ...issue, path: [name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()), ...rest] };
}

/** zod's parse, with a plain word for what is not there (Fastify hands a missing body over as null). */
export function parseInput<T>(schema: z.ZodType<T>, input: unknown): z.ZodSafeParseResult<T> {
  return schema.safeParse(input ?? undefined, {
    error: (issue) => (issue.code === "invalid_type" && issue.input === undefined ? "is missing" : undefined),
  });
}

function describe(issue: Issue, rootName: string): { path: string; message: string } {
  const parent = fieldPath(issue.path);
  if (issue.code === "unrecognized_keys") {
    const field = fieldPath([...issue.path, issue.keys[0] ?? ""]);
    return { path: field, message: `Unknown field \`${field}\`` };
  }
  const path = parent === "" ? rootName : parent;
  return { path, message: `\`${path}\`: ${lowerFirst(issue.message)}` };
}

/** A union says only "invalid input"; the branch that got furthest says what is wrong. */
function deepest(issues: readonly Issue[]): Issue | undefined {
  const first = issues[0];
  if (first?.code !== "invalid_union") return first;
  const inner = first.errors.flat().toSorted((a, b) => b.path.length - a.path.length)[0];
  if (!inner) return first;
  return deepest([{ ...inner, path: [...first.path, ...inner.path] }]);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
