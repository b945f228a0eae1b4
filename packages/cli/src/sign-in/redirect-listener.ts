import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Listens on a free local port for the browser's redirect after sign-in (RFC 8252 §7.3). */

export interface RedirectListener {
  readonly redirectUri: string;
  /** @throws the signal's reason */
  redirected(signal: AbortSignal): Promise<Redirect>;
  close(): void;
}

export interface Redirect {
  readonly url: URL;
  /** Shows the text in the browser. */
  answer(text: string): void;
}

const PATH = "/callback";
const HEADERS = {
  "content-type": "text/plain; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  connection: "close",
};

/** @param state required in the redirect, because any page can send a browser to a local port. */
export async function listenForRedirect(state: string): Promise<RedirectListener> {
  const arrived = Promise.withResolvers<Redirect>();
  const server = createServer((request, response) => {
    const url = redirectOf(request, origin);
    if (url === null || url.searchParams.get("state") !== state) {
      response.writeHead(404, HEADERS).end("Not found. Return to the terminal.");
      return;
    }
    arrived.resolve({ url, answer: (text) => answer(response, text) });
  });
  // Not `localhost`, which may resolve to something else (RFC 8252 §8.3).
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    redirectUri: origin + PATH,
    redirected: (signal) => {
      signal.throwIfAborted();
      signal.addEventListener("abort", () => arrived.reject(signal.reason), { once: true });
      return arrived.promise;
    },
    close: () => {
      server.close();
      server.closeIdleConnections();
    },
  };
}

function redirectOf({ method, url = "" }: IncomingMessage, origin: string): URL | null {
  const parsed = method === "GET" ? URL.parse(url, origin) : null;
  return parsed?.pathname === PATH ? parsed : null;
}

function answer(response: ServerResponse, text: string): void {
  response.writeHead(200, HEADERS).end(`${text}\n`);
}
