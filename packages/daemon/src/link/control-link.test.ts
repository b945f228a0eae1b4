import { describe } from "vitest";
import { FakeControlPlane } from "../testing/fake-control-plane.ts";
import { controlLinkContract } from "./control-link.contract.ts";

describe("the in-memory control plane", () => {
  controlLinkContract(async () => {
    const controlPlane = new FakeControlPlane();
    return { link: controlPlane, controlPlane, close: async () => undefined };
  });
});
