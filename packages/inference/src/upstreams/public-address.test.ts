import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isPublicAddress } from "./public-address.ts";

describe("an address to which requests may be sent", () => {
  test.each([
    "1.1.1.1",
    "8.8.8.8",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "223.255.255.255",
  ])("is %s", (address) => expect(isPublicAddress(address)).toBe(true));

  test.each(["2606:4700:4700::1111", "2001:4860:4860::8888", "2A00:1450:4001:80b::200e", "2001:200::1", "2400::"])(
    "is %s",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  test.each([
    ["this host", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["private", "10.1.2.3"],
    ["shared by a carrier, and one cloud's metadata", "100.100.100.200"],
    ["loopback", "127.0.0.1"],
    ["loopback, at the end of the range", "127.255.255.254"],
    ["most clouds' metadata", "169.254.169.254"],
    ["containers' credentials", "169.254.170.2"],
    ["Azure's metadata", "168.63.129.16"],
    ["private", "172.16.0.1"],
    ["private, at the end of the range", "172.31.255.255"],
    ["Oracle's metadata", "192.0.0.192"],
    ["private", "192.168.1.1"],
    ["for benchmarks", "198.19.0.1"],
    ["multicast", "224.0.0.1"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["unspecified", "::"],
    ["loopback", "::1"],
    ["mapped loopback", "::ffff:127.0.0.1"],
    ["mapped loopback in hexadecimal", "::ffff:7f00:1"],
    ["mapped though public", "::ffff:8.8.8.8"],
    ["compatible", "::7f00:1"],
    ["translated (NAT64)", "64:ff9b::7f00:1"],
    ["translated locally (NAT64)", "64:ff9b:1::a00:1"],
    ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    ["6to4 of a private address", "2002:a00:1::"],
    ["documentation", "2001:db8::1"],
    ["unique local", "fd12:3456::1"],
    ["one cloud's metadata", "fd00:ec2::254"],
    ["link-local", "fe80::1"],
    ["link-local with a zone", "fe80::1%eth0"],
    ["site-local", "fec0::1"],
    ["multicast", "ff02::1"],
  ])("is never %s: %s", (_name, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "0x8.8.8.8",
    "134744072",
    "256.1.1.1",
    "2606:::1",
    "2606::1::2",
    "2606:1:2:3:4:5:6:7:8",
    "g::1",
    "[2606::1]",
    "8.8.8.8 ",
  ])("is never malformed: %j", (text) => expect(isPublicAddress(text)).toBe(false));

  test("is recognized however its zeros are written", () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const url = new URL(`http://[${address}]/`);
        expect(isPublicAddress(url.hostname.slice(1, -1))).toBe(isPublicAddress(expand(address)));
      }),
    );
  });

  function expand(address: string): string {
    // A URL writes a dotted tail in hexadecimal.
    const hexadecimal = new URL(`http://[${address}]/`).hostname.slice(1, -1);
    const [before = "", after] = hexadecimal.split("::");
    const left = before === "" ? [] : before.split(":");
    const right = after === undefined || after === "" ? [] : after.split(":");
    const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0000");
    return [...left, ...zeros, ...right].join(":");
  }
});
