import { describe, expect, test } from "vitest";
import { parseNoProxy } from "./no-proxy.ts";

const names = (text: string, host: string, port = 443): boolean => parseNoProxy(text)(host, port);

describe("NO_PROXY", () => {
  test.each([
    ["*", "anything.example"],
    ["example.com", "example.com"],
    ["example.com", "a.b.example.com"],
    [".example.com", "a.example.com"],
    [".example.com", "example.com"],
    ["*.example.com", "a.example.com"],
    ["EXAMPLE.com.", "example.com"],
    ["a.test, b.test", "b.test"],
    ["a.test b.test", "b.test"],
    [",,a.test,", "a.test"],
    ["example.com:8443", "a.example.com", 8443],
    ["*:8443", "a.example.com", 8443],
    ["10.1.2.3", "10.1.2.3"],
    ["10.1.2.3:8080", "10.1.2.3", 8080],
    ["10.0.0.0/8", "10.255.0.1"],
    ["10.0.0.0/8:8080", "10.255.0.1", 8080],
    ["0.0.0.0/0", "198.51.100.7"],
    ["fd00::/8", "fd12::1"],
    ["fd12::1", "fd12::1"],
    ["[fd12::1]:8443", "fd12::1", 8443],
    ["10.0.0.0/8", "::ffff:a01:203"],
  ])("%s covers %s port %s", (text, host, port = 443) => {
    expect(names(text, host, port)).toBe(true);
  });

  test.each([
    ["", "example.com"],
    ["example.com", "notexample.com"],
    ["example.com", "example.com.evil.test"],
    ["*.example.com", "example.com"],
    ["example.com:8443", "example.com", 443],
    ["10.1.2.3", "110.1.2.3"],
    ["0.1.2", "10.0.1.2"],
    ["10.0.0.0/8", "11.0.0.1"],
    ["10.0.0.0/8", "10.example.com"],
    ["10.0.0.0/99", "10.0.0.1"],
    ["10.0.0.0/", "10.0.0.1"],
    ["example.com/8", "example.com"],
    ["fd00::/8", "fe80::1"],
    ["1", "10.0.0.1"],
  ])("%s does not cover %s port %s", (text, host, port = 443) => {
    expect(names(text, host, port)).toBe(false);
  });
});
