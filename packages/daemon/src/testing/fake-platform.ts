import type { HttpAnswer, HttpClient, HttpRequest } from "../link/http-client.ts";

type Reply = Partial<HttpAnswer> & { readonly json?: unknown };

/** An HTTP client that answers from a script and keeps what was asked. A reply that is an Error fails the call. */
export class FakePlatform {
  readonly requests: HttpRequest[] = [];
  readonly #script: (Reply | Error)[] = [];
  /** Answers once the script is used up. */
  fallback: ((request: HttpRequest) => Reply | Error) | null = null;

  reply(...replies: (Reply | Error)[]): this {
    this.#script.push(...replies);
    return this;
  }

  readonly client: HttpClient = async (request) => {
    this.requests.push(request);
    const reply = this.#script.shift() ?? this.fallback?.(request) ?? new Error("connection refused");
    if (reply instanceof Error) throw reply;
    return { status: 200, headers: {}, text: JSON.stringify(reply.json ?? {}), ...reply };
  };
}

/** An error answer in the platform host's own form. */
export function refusal(status: number, code: string, headers: HttpAnswer["headers"] = {}): Reply {
  return { status, headers, json: { error: { message: `refused: ${code}`, type: "t", code, param: null } } };
}
