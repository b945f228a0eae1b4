import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { weighBuffersWithBallast } from "../../../packages/daemon/src/process/garbage-collection.ts";

/** An engine for `call-relay.ts`: small answers, streams, bulk in both directions. Prints its port, and `left NAME` when a caller leaves `/hang?name=NAME`. */

weighBuffersWithBallast();
const SMALL = JSON.stringify({ choices: [{ message: { role: "assistant", content: "x".repeat(900) } }] });
const CHUNK = Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content: "word " } }] })}\n\n`);
const PIECE = Buffer.alloc(64 * 1024, "x");

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://engine");
  const count = Number(searchParams.get("count") ?? 0);
  switch (pathname) {
    case "/stream": {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let left = count;
      const write = (): void => {
        if (left-- <= 0) return void response.end();
        response.write(CHUNK);
        setImmediate(write);
      };
      return write();
    }
    case "/bulk": {
      response.writeHead(200, { "content-length": count * PIECE.length });
      let left = count;
      const write = (): void => {
        while (left-- > 0) if (!response.write(PIECE)) return;
        response.end();
      };
      response.on("drain", write);
      return write();
    }
    case "/hang":
      response.writeHead(200).write("begun");
      response.on("close", () =>
        process.stdout.write(`left ${searchParams.get("name")} ${performance.timeOrigin + performance.now()}\n`),
      );
      return;
    default:
      // With its length, as model servers have it; Node says it by itself only where the head goes with the body.
      response.setHeader("content-type", "application/json");
      request.resume().on("end", () => response.end(SMALL));
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
