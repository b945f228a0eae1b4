import { expect, test } from "vitest";
import { nameServersOf } from "./machine-network.ts";

test("name servers that a container can ask are IPv4 addresses beyond the machine's loopback", () => {
  const text =
    "# by hand\nnameserver 169.254.169.254\nnameserver 127.0.0.53\n nameserver  192.0.2.1 \nnameserver fd00::1\nsearch a\n";
  expect(nameServersOf(text)).toEqual(["169.254.169.254", "192.0.2.1"]);
});
