import { afterEach, beforeEach, expect, it } from "vitest";
import { NODE_RATES } from "../../telemetry/bounds/node-rate-bounds.ts";
import { INSTALLATION, type NodeFixture, NodeKey, nodeFixture, ORIGIN, OWNER, reportFor } from "./node.fixture.ts";

let fixture: NodeFixture;
beforeEach(async () => {
  fixture = await nodeFixture();
});
afterEach(() => fixture.close());

type Kind = "ready" | "enroll" | "identityToken";

/** @returns what calls as this node. */
async function callerOf(name: string): Promise<Record<Kind, () => Promise<unknown>>> {
  const { id: nodeId } = await fixture.create(name);
  const key = new NodeKey();
  const { token: bootstrapToken } = await fixture.enrollment.issueBootstrapToken(OWNER, nodeId);
  const request = key.enrollRequest(nodeId, bootstrapToken);
  const enroll = () => fixture.enrollment.enroll({ nodeId, bootstrapToken, request, origin: ORIGIN });
  await enroll();
  const desired = await fixture.reports.desiredState(nodeId);
  const body = { id: nodeId, workloadReports: [reportFor(desired)], operatingSystem: "", workerImageDigest: "" };
  const assertion = (): string => {
    const now = Math.floor(fixture.clock.now() / 1000);
    const claims = { iss: nodeId, sub: nodeId, aud: INSTALLATION.id, iat: now, exp: now + 60 };
    return key.sign({ ...claims, jti: crypto.randomUUID() });
  };
  return {
    enroll,
    ready: () => fixture.reports.ready(nodeId, body),
    identityToken: () => fixture.enrollment.renewIdentity(nodeId, assertion()),
  };
}

it.each(["ready", "enroll", "identityToken"] as const)(
  "rejects calls of one node beyond its rate: %s",
  async (kind) => {
    const [box, other] = [await callerOf("Box"), await callerOf("Other")];
    let served = 0;
    const spend = async (): Promise<never> => {
      for (;;) {
        await box[kind]();
        served += 1;
      }
    };
    const { capacity, perSecond } = NODE_RATES[kind];
    const retryAfterSeconds = Math.ceil(1 / perSecond);
    await expect(spend()).rejects.toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds });
    expect(served).toBe(kind === "enroll" ? capacity - 1 : capacity);
    expect(fixture.bounds.counts.get("node_call_rate")).toBe(1);
    await expect(other[kind]()).resolves.not.toThrow();
    fixture.clock.advance(retryAfterSeconds * 1000);
    await expect(box[kind]()).resolves.not.toThrow();
  },
);

it("a stranger's calls do not count toward a node's rate", async () => {
  const box = await callerOf("Box");
  const { node } = await fixture.createEnrolled("Other");
  for (let n = 0; n < 2 * NODE_RATES.identityToken.capacity; n++) {
    const forged = new NodeKey().sign({ iss: node.id, sub: node.id });
    await expect(fixture.enrollment.renewIdentity(node.id, forged)).rejects.toMatchObject({
      code: "invalid_credential",
    });
  }
  await expect(box.identityToken()).resolves.toBeDefined();
});
