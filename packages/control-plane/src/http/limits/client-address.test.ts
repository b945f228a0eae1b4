import type { IncomingMessage } from "node:http";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { createHttpApp } from "../http-app.ts";
import { clientAddress, clientAddresses, isNetwork, networkOf } from "./client-address.ts";

/** Whom the host takes for the client, of a request from this peer with this header. */
async function addressSeen(
  trustedProxies: readonly string[],
  { peer, forwardedFor }: { readonly peer: string; readonly forwardedFor?: string },
): Promise<string> {
  const app = createHttpApp({
    ids: countingIds(),
    log: pino({ level: "silent" }),
    trustedProxies,
    routes: (routes) => void routes.get("/", async (request) => ({ address: clientAddress(request) })),
  });
  const headers = forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor };
  const answer = await app.inject({ url: "/", remoteAddress: peer, headers });
  await app.close();
  const { address } = answer.json<{ address: string }>();
  // Upgrades pass by the framework: both must see the same client.
  const raw = { socket: { remoteAddress: peer }, headers } as IncomingMessage;
  expect(clientAddresses(trustedProxies)(raw)).toBe(address);
  return address;
}

describe("a client's address", () => {
  const PROXY = "10.0.0.1";
  const CLIENT = "203.0.113.9";

  test("is that of the peer when no proxy is trusted, whatever its headers say", async () => {
    expect(await addressSeen([], { peer: PROXY, forwardedFor: CLIENT })).toBe(PROXY);
    expect(await addressSeen([], { peer: "::ffff:192.0.2.1" })).toBe("192.0.2.1");
  });

  test("is that of the peer when only another peer is trusted", async () => {
    expect(await addressSeen([PROXY], { peer: "10.0.0.2", forwardedFor: CLIENT })).toBe("10.0.0.2");
  });

  test("is the forwarded one if the proxy is trusted by address or by network", async () => {
    for (const trusted of [PROXY, "10.0.0.0/8"]) {
      expect(await addressSeen([trusted], { peer: PROXY, forwardedFor: CLIENT })).toBe(CLIENT);
    }
    expect(await addressSeen(["fd00::/8"], { peer: "fd00::1", forwardedFor: "2001:db8::1" })).toBe("2001:db8::1");
  });

  test("cannot be forged by the client, because only the entry added by the proxy counts", async () => {
    expect(await addressSeen([PROXY], { peer: PROXY, forwardedFor: `192.0.2.66, ${CLIENT}` })).toBe(CLIENT);
    const chain = `192.0.2.66, ${CLIENT}, 10.0.0.7`;
    expect(await addressSeen(["10.0.0.0/8"], { peer: PROXY, forwardedFor: chain })).toBe(CLIENT);
  });

  test.each(["", "unknown", "'; drop table user; --", "x".repeat(5000), "203.0.113.9:4711", "<script>"])(
    "is that of the proxy when it forwards %j, which is not an address",
    async (forwardedFor) => {
      expect(await addressSeen([PROXY], { peer: PROXY, forwardedFor })).toBe(PROXY);
    },
  );
});

describe("the network by which a client is counted", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::6", "2001:db8:1:2::/64"],
    ["2001:db8::", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["", ""],
  ])("of %s is %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  test("is the same for all hosts of an IPv6 network, and different for the next network", () => {
    expect(networkOf("2001:db8:a:b::1")).toBe(networkOf("2001:db8:a:b:ffff:ffff:ffff:ffff"));
    expect(networkOf("2001:db8:a:b::1")).not.toBe(networkOf("2001:db8:a:c::1"));
  });
});

test.each([
  ["10.0.0.1", true],
  ["10.0.0.0/8", true],
  ["::1", true],
  ["fd00::/8", true],
  ["10.0.0.0/33", false],
  ["fd00::/129", false],
  ["10.0.0.0/8/8", false],
  ["10.0.0.0/", false],
  ["proxy.example.org", false],
  ["*", false],
  ["", false],
])("%s is a network: %s", (text, expected) => {
  expect(isNetwork(text)).toBe(expected);
});
