import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { parseInput } from "../../../http/requests/validation.ts";

/** Validates form input into values for services, or messages for fields. */

/** The password rules are in the sign-in room; this only bounds the length. */
export const passwordSchema = z.string().max(2048, "is too long");

/** A posted form, as received. */
export type FormFields = Readonly<Record<string, string>>;
export type FormErrors = Readonly<Record<string, string>>;

/** Generous; the fields have lower limits. */
const MAX_VALUE = 8192;

/** @param text a body of `application/x-www-form-urlencoded`. @throws DomainError invalid_request */
export function parseForm(text: string): FormFields {
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name) || value.length > MAX_VALUE) throw misused();
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

export type ReadForm<T> =
  | { readonly values: T; readonly errors: null }
  | { readonly values: null; readonly errors: FormErrors };

/** @throws DomainError invalid_request for a foreign form. */
export function readForm<T>(schema: z.ZodType<T>, fields: FormFields): ReadForm<T> {
  const result = parseInput(schema, fields);
  if (result.success) return { values: result.data, errors: null };
  const errors: Record<string, string> = {};
  for (const { code, path, message } of result.error.issues) {
    const [name] = path;
    if (code === "unrecognized_keys" || typeof name !== "string" || !(name in fields)) throw misused();
    errors[name] ??= sentence(message);
  }
  return { values: null, errors };
}

/**
 * Maps a service's error to a form field.
 * @param names the form's name of a field if it differs. @throws the error, if it is not about a field.
 */
export function fieldError(error: unknown, names: Readonly<Record<string, string>> = {}): FormErrors {
  if (!(error instanceof DomainError) || error.code !== "invalid_request" || error.param === null) throw error;
  return { [names[error.param] ?? error.param]: error.message };
}

/** "must not be empty" → "Must not be empty." */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function misused(): DomainError {
  return new DomainError("invalid_request", "This form does not belong to this site. Open the page again.");
}
