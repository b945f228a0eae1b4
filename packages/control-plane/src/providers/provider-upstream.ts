import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "../inference/upstream.ts";

const VERSION = "/v1";

/** A provider's API. Our paths begin with `/v1`; of a provider's that is part of its base URL, as SDKs have it, and may be another. */
export class ProviderUpstream implements UpstreamTransport {
  readonly #http: UpstreamTransport;

  constructor(http: UpstreamTransport) {
    this.#http = http;
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const { method, path, headers, body } = request;
    return this.#http.dispatch({ method, path: path.slice(VERSION.length), headers, body }, handler);
  }
}
