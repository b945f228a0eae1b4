import { HeaderRefused } from "@fairlead/wire/http1/http1-request";
import { describe, expect, test } from "vitest";
import type { IncomingRequest } from "../tunnel/tunnel-call.ts";
import { engineRequest } from "./engine-request.ts";

const ENGINE = { host: "127.0.0.1", port: 8080 };
const rendered = (request: Partial<IncomingRequest>): ReturnType<typeof engineRequest> =>
  engineRequest(
    { workload: "engine", token: undefined, kind: "no-body", method: "GET", path: "/", headers: {}, ...request },
    ENGINE,
  );
const OWN = "host: 127.0.0.1:8080\r\nconnection: keep-alive\r\n";

describe("a request for an engine", () => {
  test("contains the caller's method, path and headers byte for byte, without connection headers or our own", () => {
    const headers = {
      host: "platform.example",
      accept: "a, b",
      "x-name": "J\xc3\xbcrgen",
      "set-cookie": ["a", "b"],
      te: "trailers",
      "fairlead-token": "other",
      "transfer-encoding": "gzip",
      upgrade: "h2c",
    };
    expect(rendered({ path: "/v1/x?y=\xfc", headers })).toEqual({
      method: "GET",
      head: `GET /v1/x?y=\xfc HTTP/1.1\r\n${OWN}accept: a, b\r\nx-name: J\xc3\xbcrgen\r\nset-cookie: a\r\nset-cookie: b\r\n\r\n`,
      body: [],
    });
  });

  test.each<[string, Partial<IncomingRequest>, string, unknown]>([
    ["none", { method: "GET" }, "", []],
    ["none, although its method usually has one", { method: "POST" }, "content-length: 0\r\n", []],
    ["known length", { method: "POST", kind: "body", headers: { "content-length": "5" } }, "content-length: 5\r\n", 5],
    ["unknown length", { method: "POST", kind: "body" }, "transfer-encoding: chunked\r\n", "chunked"],
    [
      "present, although its method usually has none",
      { method: "DELETE", kind: "body" },
      "transfer-encoding: chunked\r\n",
      "chunked",
    ],
    ["none, but a declared length", { method: "GET", headers: { "content-length": "5" } }, "content-length: 5\r\n", 5],
  ])("declares its body: %s", (...[, request, line, body]) => {
    const { method = "" } = request;
    expect(rendered(request)).toEqual({ method, head: `${method} / HTTP/1.1\r\n${OWN}${line}\r\n`, body });
  });

  test.each<[string, Partial<IncomingRequest>]>([
    ["a header that would split the request", { headers: { "x-a": "b\r\nx-evil: 1" } }],
    ["a header character beyond one byte", { headers: { "x-a": "\u0100" } }],
    ["a path that would split the request", { path: "/ HTTP/1.1\r\nx-evil: 1\r\n\r\n" }],
    ["an invalid path", { path: "http://other/" }],
    ["an invalid method", { method: "GET /" }],
    ["an invalid length", { headers: { "content-length": "5, 6" } }],
  ])("is rejected with %s", (_name, request) => {
    expect(() => rendered(request)).toThrow(HeaderRefused);
  });
});
