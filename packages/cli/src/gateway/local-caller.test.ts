import { describe, expect, test } from "vitest";
import { refusalOfRequest } from "./local-caller.ts";

describe("the local forwarder", () => {
  test.each<[string, Record<string, string>]>([
    ["curl", { host: "localhost:9000" }],
    ["a program that names the address", { host: "127.0.0.1:9000" }],
    ["one that speaks IPv6", { host: "[::1]:9000" }],
    [
      "a page that it brought itself",
      { host: "localhost:9000", origin: "http://localhost:9000", "sec-fetch-site": "same-origin" },
    ],
    ["an address that was typed", { host: "localhost:9000", "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }],
    [
      "a link that was followed",
      { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    ],
  ])("serves %s", (_who, headers) => {
    expect(refusalOfRequest("GET", headers)).toBeNull();
  });

  test.each<[string, string, Record<string, string>]>([
    ["a name that somebody's DNS points here", "GET", { host: "evil.example:9000" }],
    ["a request without a name", "GET", {}],
    ["a page elsewhere", "POST", { host: "localhost:9000", origin: "https://evil.example" }],
    ["a page that hides its origin", "POST", { host: "localhost:9000", origin: "null" }],
    ["a page on another port of this machine", "GET", { host: "localhost:9000", origin: "http://localhost:3000" }],
    [
      "a picture in a page elsewhere",
      "GET",
      { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    ],
    [
      "a form in a page elsewhere",
      "POST",
      { host: "localhost:9000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    ],
  ])("refuses %s", (_who, method, headers) => {
    expect(refusalOfRequest(method, headers)).toEqual(expect.any(String));
  });
});
