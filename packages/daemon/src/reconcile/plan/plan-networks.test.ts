import { describe, expect, test } from "vitest";
import { JUST_READY, NETWORK, networkOf, planOf, READY } from "./picture.fixture.ts";

describe("networks", () => {
  const OTHER = "fairlead-0000abcd-engine-offline";

  test("a workload's network is created before its container", () => {
    expect(planOf({ networks: [] }).steps).toEqual([`create network ${NETWORK}`]);
    expect(planOf({}).steps).toEqual(["create v2 from example/engine:1"]);
  });

  test("an unwanted network is removed with its last container, not before", () => {
    const networks = [networkOf(NETWORK), networkOf(OTHER)];
    expect(planOf({ networks, pieces: [{ is: "v2", ...READY }] }).steps).toEqual([`remove network ${OTHER}`]);
    const former = { is: "v1", network: OTHER, ...READY };
    expect(planOf({ networks, pieces: [former, { is: "v2", ...JUST_READY }], update: "start-first" }).steps).toEqual(
      [],
    );
    const orphaned = { networks: [networkOf(NETWORK)], desired: { workloads: [] } };
    expect(planOf(orphaned).steps).toEqual([`remove network ${NETWORK}`]);
  });

  test("a container that has lost its network is removed, since it cannot start again", () => {
    const lost = { networks: [], pieces: [{ is: "v2", state: "exited" }] } as const;
    expect(planOf(lost).steps).toEqual(["remove v2"]);
    expect(planOf({ ...lost, pieces: [{ is: "v2", ...READY }] }).steps).toEqual([]);
  });
});
