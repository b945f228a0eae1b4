import { describe } from "vitest";
import { openH2Tunnel } from "./h2-caller.fixture.ts";
import { tunnelCallContract } from "./tunnel-call.contract.ts";

describe("over HTTP/2", () => {
  tunnelCallContract(openH2Tunnel);
});
