import type { ErrorAnswer } from "@fairlead/hosting/errors/error-response";
import type { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";

/** Error pages for people who open an API URL in a browser. Programs get JSON. */
export interface ErrorPages {
  /** Set by the room that renders pages; null if there is none. */
  render: ((error: DomainError, requestId: string) => ErrorPage) | null;
}

export interface ErrorPage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

declare module "fastify" {
  interface FastifyInstance {
    errorPages: ErrorPages;
  }
}

/** @returns whether the error was sent as a page. */
export function sendErrorPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { error, answer }: { readonly error: DomainError; readonly answer: ErrorAnswer },
): boolean {
  const { render } = request.server.errorPages;
  if (render === null || (request.method !== "GET" && request.method !== "HEAD")) return false;
  // Caches must not mix up page and JSON.
  void reply.header("vary", "Accept");
  if (!acceptsHtml(request.headers.accept)) return false;
  const { html, headers } = render(error, request.id);
  const type = { "content-type": "text/html; charset=utf-8" };
  void reply
    .code(answer.status)
    .headers({ ...answer.headers, ...headers, ...type })
    .send(html);
  return true;
}

/** Browsers accept HTML explicitly; programs accept JSON, a wildcard, or nothing. */
export function acceptsHtml(accept: string | undefined): boolean {
  return (accept ?? "").split(",").some((part) => {
    const [type = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
