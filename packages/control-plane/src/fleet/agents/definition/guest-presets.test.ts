import { volumeSchema } from "@fairlead/protocol/engine-config";
import { describe, expect, it } from "vitest";
import { guestPreset } from "./guest-presets.ts";

const AGENT = "agt_01j9z0q8w7e6r5t4y3p2a1s0d9";

describe("guest presets", () => {
  it("treat a guest that is not a preset as an image", () => {
    expect(guestPreset("ghcr.io/example/bot:2")).toMatchObject({
      image: "ghcr.io/example/bot:2",
      args: [],
      secrets: [],
    });
  });

  it("do not treat JavaScript's built-in names as presets", () => {
    for (const name of ["constructor", "__proto__", "toString"]) expect(guestPreset(name).image).toBe(name);
  });

  it("never run two copies of an agent during an update", () => {
    for (const guest of ["openclaw", "fairlead-demo-agent", "image"]) {
      expect(guestPreset(guest).update).toBe("stop-first");
    }
  });

  it("give each agent its own volumes, with valid names", () => {
    const { volumes } = guestPreset("openclaw");
    const [mine] = volumes(AGENT);
    const [other] = volumes(`${AGENT.slice(0, -1)}8`);
    expect(volumeSchema.parse(mine)).toEqual(mine);
    expect(mine?.name).not.toBe(other?.name);
  });
});
