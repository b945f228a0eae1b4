import type { HttpAnswer, HttpClient, HttpRequest } from "../link/http-client.ts";

type Reply = Partial<HttpAnswer> & { readonly json?: unknown };

/** An HTTP client with scripted responses that records requests. An Error as a response fails the call. */
export class FakePlatform {
  readonly requests: HttpRequest[] = [];
  readonly #script: (Reply | Error)[] = [];
  /** Response after the end of the script. */
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

/** An error response in the platform's format. */
export function refusal(status: number, code: string, headers: HttpAnswer["headers"] = {}): Reply {
  return { status, headers, json: { error: { message: `refused: ${code}`, type: "t", code, param: null } } };
}
