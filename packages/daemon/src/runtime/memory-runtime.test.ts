import { describe } from "vitest";
import { OWNER } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { containerRuntimeContract } from "./container-runtime.contract.ts";
import { MemoryRuntime } from "./memory-runtime.ts";

describe("the in-memory container engine", () => {
  containerRuntimeContract(async () => {
    const runtime = new MemoryRuntime(new FakeTime());
    runtime.addImage("example/engine:1");
    runtime.crashOnCommand(["ends"], 3);
    return {
      runtime,
      owner: OWNER,
      image: "example/engine:1",
      endsWithThree: { command: ["ends"], args: [] },
      missingImage: "example/none:1",
      plantForeign: async (name) => void runtime.plant({ name }),
      close: async () => undefined,
    };
  });
});
