import { DomainError } from "@fairlead/protocol/errors";
import { withoutTrailing } from "@fairlead/protocol/values/text";

/** Syntax of base URLs. Pure. */

const MAX_LENGTH = 2048;

/** Any http or https URL that paths can be appended to. @throws DomainError invalid_request */
export function parseBaseUrl(text: string): URL {
  const url = text.length <= MAX_LENGTH ? URL.parse(text) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw wrongBaseUrl("must be an https URL");
  if (url.username !== "" || url.password !== "") {
    throw wrongBaseUrl("must not contain a user or password; use the credential field");
  }
  if (url.search !== "" || url.hash !== "" || /[?#]$/.test(text)) {
    throw wrongBaseUrl("must not contain a query or fragment");
  }
  if (/\/(chat\/completions|responses|models)$/.test(withoutTrailing(url.pathname, "/"))) {
    throw wrongBaseUrl("must end before `/chat/completions`, `/responses` or `/models`");
  }
  return url;
}

/** Normalized, without a trailing slash. */
export function asText(url: URL): string {
  return url.origin + withoutTrailing(url.pathname, "/");
}

export function wrongBaseUrl(what: string): DomainError {
  return new DomainError("invalid_request", `\`baseUrl\`: ${what}.`, { param: "baseUrl" });
}
