import { describe, expect, test } from "vitest";
import { cookieScope, publicAddressProblem, publicPath } from "./public-url.ts";

describe("a public URL", () => {
  test.each([
    "https://a.example.org",
    "http://127.0.0.1:8080",
    "http://[::1]:8080/fairlead",
    "https://a.example.org/fairlead",
    "https://a.example.org/tools/fair-lead_2.0~x",
  ])("may be %s", (text) => {
    expect(publicAddressProblem(text)).toBeNull();
  });

  test.each([
    ["https://a.example.org/?x=1", "query"],
    ["https://a.example.org?x", "query"],
    ["https://a.example.org?", "query"],
    ["https://a.example.org/a?x=1", "query"],
    ["https://a.example.org/a#x", "fragment"],
    ["https://user@a.example.org", "user or password"],
    ["https://user:secret@a.example.org/a", "user or password"],
    ["https://@a.example.org", "user or password"],
    ["https://a.example.org/", "slash"],
    ["https://a.example.org/a/", "slash"],
    ["https://a.example.org/a//b", "empty or dot segments"],
    ["https://a.example.org/a/../b", "empty or dot segments"],
    ["https://a.example.org/./b", "empty or dot segments"],
    ["https://a.example.org/a%2Fb", "letters, digits"],
    ["https://a.example.org/a;b", "letters, digits"],
    ["https://a.example.org/ä", "letters, digits"],
    ['https://a.example.org/a"b', "letters, digits"],
  ])("may not be %s", (text, words) => {
    expect(publicAddressProblem(text)).toContain(words);
  });

  test("prefixes the server's paths with its own, if it has one", () => {
    expect(publicPath("https://a.example.org")).toBe("");
    expect(publicPath("https://a.example.org/tools/fairlead")).toBe("/tools/fairlead");
  });

  test.each([
    ["https://a.example.org", { prefix: "__Host-", path: "/", secure: true }],
    ["https://a.example.org/fairlead", { prefix: "__Secure-", path: "/fairlead", secure: true }],
    ["http://127.0.0.1:8080", { prefix: "", path: "/", secure: false }],
    ["http://127.0.0.1:8080/fairlead", { prefix: "", path: "/fairlead", secure: false }],
  ])("limits cookies in a way that browsers enforce: %s", (url, scope) => {
    expect(cookieScope(url)).toEqual(scope);
  });
});
