import { volumeSchema } from "@fairlead/protocol/engine-config";
import { describe, expect, it } from "vitest";
import { guestPreset } from "./guest-presets.ts";

const AGENT = "agt_01j9z0q8w7e6r5t4y3p2a1s0d9";

describe("guest presets", () => {
  it("take a guest that is no preset for an image", () => {
    expect(guestPreset("ghcr.io/example/bot:2")).toMatchObject({
      image: "ghcr.io/example/bot:2",
      args: [],
      secrets: [],
    });
  });

  it("take no name of JavaScript's own for a preset", () => {
    for (const name of ["constructor", "__proto__", "toString"]) expect(guestPreset(name).image).toBe(name);
  });

  it("never run two copies of an agent for an update", () => {
    for (const guest of ["openclaw", "fairlead-demo-agent", "image"]) {
      expect(guestPreset(guest).update).toBe("stop-first");
    }
  });

  it("give each agent volumes of its own, by names that volumes can have", () => {
    const { volumes } = guestPreset("openclaw");
    const [mine] = volumes(AGENT);
    const [other] = volumes(`${AGENT.slice(0, -1)}8`);
    expect(volumeSchema.parse(mine)).toEqual(mine);
    expect(mine?.name).not.toBe(other?.name);
  });
});
