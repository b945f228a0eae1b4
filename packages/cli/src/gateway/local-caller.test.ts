import { describe, expect, test } from "vitest";
import { refusalOfRequest } from "./local-caller.ts";

describe("the local forwarder", () => {
  test.each<[string, Record<string, string>]>([
    ["curl", { host: "localhost:9000" }],
    ["a program that uses the IP address", { host: "127.0.0.1:9000" }],
    ["a program that uses IPv6", { host: "[::1]:9000" }],
    [
      "a page that it served itself",
      { host: "localhost:9000", origin: "http://localhost:9000", "sec-fetch-site": "same-origin" },
    ],
    ["a typed address", { host: "localhost:9000", "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }],
    ["a followed link", { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }],
  ])("serves %s", (_who, headers) => {
    expect(refusalOfRequest("GET", headers)).toBeNull();
  });

  test.each<[string, string, Record<string, string>]>([
    ["another host name that resolves to this machine", "GET", { host: "evil.example:9000" }],
    ["a request without a Host header", "GET", {}],
    ["a page of another site", "POST", { host: "localhost:9000", origin: "https://evil.example" }],
    ["a page that hides its origin", "POST", { host: "localhost:9000", origin: "null" }],
    ["a page on another port of this machine", "GET", { host: "localhost:9000", origin: "http://localhost:3000" }],
    [
      "an image in a page of another site",
      "GET",
      { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    ],
    [
      "a form in a page of another site",
      "POST",
      { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    ],
  ])("rejects %s", (_who, method, headers) => {
    expect(refusalOfRequest(method, headers)).toEqual(expect.any(String));
  });
});
