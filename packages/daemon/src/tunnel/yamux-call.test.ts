import { describe } from "vitest";
import { tunnelCallContract } from "./tunnel-call.contract.ts";
import { openTestTunnel } from "./yamux-caller.fixture.ts";

describe("the daemon's end of a tunnel", () => {
  tunnelCallContract(openTestTunnel);
});
