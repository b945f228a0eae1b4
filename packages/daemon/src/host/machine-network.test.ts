import { expect, test } from "vitest";
import { nameServersOf } from "./machine-network.ts";

test("name servers for containers are IPv4 addresses outside the machine's loopback", () => {
  const text =
    "# by hand\nnameserver 169.254.169.254\nnameserver 127.0.0.53\n nameserver  192.0.2.1 \nnameserver fd00::1\nsearch a\n";
  expect(nameServersOf(text)).toEqual(["169.254.169.254", "192.0.2.1"]);
});
