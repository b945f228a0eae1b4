import { Agent, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";

/** `node-pipe-program.ts UPSTREAM_PORT`: prints its port. A proxy as one writes it in an hour, to compare with. */

const HOP_BY_HOP = new Set(["host", "connection", "keep-alive", "transfer-encoding", "authorization"]);

function kept(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? "";
    if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, raw[at + 1] ?? "");
  }
  return headers;
}

const [, , upstreamPort] = process.argv;
const agent = new Agent({ keepAlive: true, maxFreeSockets: 1024, scheduling: "lifo" });
const server = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (request, response) => {
  const headers = kept(request.rawHeaders);
  headers.push("host", "127.0.0.1", "authorization", "Bearer upstream");
  const { method, url } = request;
  const upstream = httpRequest({ host: "127.0.0.1", port: upstreamPort, method, path: url, agent, headers });
  upstream.on("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, kept(answer.rawHeaders));
    answer.pipe(response);
  });
  upstream.on("error", () => response.destroy());
  response.on("close", () => {
    if (!response.writableFinished) upstream.destroy();
  });
  request.pipe(upstream);
});
server.listen({ host: "127.0.0.1", port: 0, backlog: 8192 }, () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
