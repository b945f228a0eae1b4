import { DomainError } from "@fairlead/protocol/errors";

/** What a base URL may look like, wherever it leads. Pure. */

const MAX_LENGTH = 2048;

/** Any http or https URL that paths can be put behind. @throws DomainError invalid_request */
export function parseBaseUrl(text: string): URL {
  const url = text.length <= MAX_LENGTH ? URL.parse(text) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw wrongBaseUrl("must be an https URL");
  if (url.username !== "" || url.password !== "") {
    throw wrongBaseUrl("must hold no user or password; the credential has a field of its own");
  }
  if (url.search !== "" || url.hash !== "" || /[?#]$/.test(text)) {
    throw wrongBaseUrl("must have no query and no fragment");
  }
  if (/\/(chat\/completions|responses|models)\/*$/.test(url.pathname)) {
    throw wrongBaseUrl("must end before `/chat/completions`, `/responses` or `/models`");
  }
  return url;
}

/** In one form, without a slash at the end. */
export function asText(url: URL): string {
  return url.origin + url.pathname.replace(/\/+$/, "");
}

export function wrongBaseUrl(what: string): DomainError {
  return new DomainError("invalid_request", `\`baseUrl\`: ${what}.`, { param: "baseUrl" });
}
