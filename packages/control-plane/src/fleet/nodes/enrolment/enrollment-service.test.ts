import { type EnrollAnswer, type EnrollRequest, parseBootstrapToken } from "@fairlead/protocol/enrollment";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import {
  INSTALLATION,
  NAMED_BUILD,
  type NodeFixture,
  NodeKey,
  nodeFixture,
  ORIGIN,
  OWNER,
  STRANGER,
  VIEWER,
} from "../node.fixture.ts";
import { BOOTSTRAP_TOKEN_TTL_MS } from "./enrollment-service.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  beforeEach(async () => {
    fixture = await nodeFixture(open);
  });
  afterEach(() => fixture.close());

  function enroll(nodeId: string, bootstrapToken: string, by: NodeKey | EnrollRequest): Promise<EnrollAnswer> {
    const request = by instanceof NodeKey ? by.enrollRequest(nodeId, bootstrapToken) : by;
    return fixture.enrollment.enroll({ nodeId, bootstrapToken, request, origin: ORIGIN });
  }

  async function nodeWithToken(): Promise<{ nodeId: string; token: string }> {
    const { id } = await fixture.create("Box");
    const { token } = await fixture.enrollment.issueBootstrapToken(OWNER, id);
    return { nodeId: id, token };
  }

  describe("a bootstrap token", () => {
    it("is issued only to users who can manage the project's nodes", async () => {
      const { id } = await fixture.create("Box");
      await expect(fixture.enrollment.issueBootstrapToken(VIEWER, id)).rejects.toMatchObject({
        code: "permission_denied",
      });
      await expect(fixture.enrollment.issueBootstrapToken(STRANGER, id)).rejects.toMatchObject({ code: "not_found" });
      await expect(fixture.enrollment.issueBootstrapToken(OWNER, "nod_x")).rejects.toMatchObject({ code: "not_found" });
    });

    it("contains the platform's URL, the node and the build to install", async () => {
      const { nodeId, token } = await nodeWithToken();
      const url = "http://127.0.0.1:8080";
      expect(parseBootstrapToken(token)).toMatchObject({ url, nodeId, build: NAMED_BUILD });
    });

    it("enrolls the first daemon that presents it, and binds its key", async () => {
      const { nodeId, token } = await nodeWithToken();
      expect(await fixture.statusOf(nodeId)).toBe("bootstrapping");
      const answer = await enroll(nodeId, token, new NodeKey());
      expect(answer).toMatchObject({ nodeId, installationId: INSTALLATION.id, expiresIn: 24 * 3600 });
      expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({ status: "starting", publicIp: "192.0.2.1" });
    });

    it("can be repeated with the same key after a lost response, even after it expires", async () => {
      const { nodeId, token } = await nodeWithToken();
      const key = new NodeKey();
      await enroll(nodeId, token, key);
      fixture.clock.advance(BOOTSTRAP_TOKEN_TTL_MS + 1);
      await expect(enroll(nodeId, token, key)).resolves.toMatchObject({ nodeId });
    });

    it("is refused with a second key, and the refusal is recorded as an event", async () => {
      const { nodeId, token } = await nodeWithToken();
      const first = new NodeKey();
      await enroll(nodeId, token, first);
      await expect(enroll(nodeId, token, new NodeKey())).rejects.toMatchObject({ code: "bootstrap_token_used" });
      const events = await fixture.stores.events.list(nodeId, { after: null, limit: 50 });
      expect(events.map((event) => event.kind)).toContain("enroll_refused");
      expect((await fixture.stores.nodes.find(nodeId))?.signingKey).toEqual(first.signingKey);
    });

    it("enrolls exactly one of two concurrent daemons", async () => {
      const { nodeId, token } = await nodeWithToken();
      const outcomes = await Promise.allSettled([
        enroll(nodeId, token, new NodeKey()),
        enroll(nodeId, token, new NodeKey()),
      ]);
      expect(outcomes.map((outcome) => outcome.status).toSorted()).toEqual(["fulfilled", "rejected"]);
    });

    it("is invalid if a newer one was issued, if it was never issued, and for another node", async () => {
      const { nodeId, token } = await nodeWithToken();
      const other = await fixture.create("Other");
      const { token: newer } = await fixture.enrollment.issueBootstrapToken(OWNER, nodeId);
      const refused = { code: "invalid_credential" };
      await expect(enroll(nodeId, token, new NodeKey())).rejects.toMatchObject(refused);
      await expect(enroll(nodeId, `${newer}x`, new NodeKey())).rejects.toMatchObject(refused);
      await expect(enroll(other.id, newer, new NodeKey())).rejects.toMatchObject(refused);
      await expect(enroll(nodeId, newer, new NodeKey())).resolves.toMatchObject({ nodeId });
    });

    it("expires after 30 minutes if it is not used", async () => {
      const { nodeId, token } = await nodeWithToken();
      fixture.clock.advance(BOOTSTRAP_TOKEN_TTL_MS);
      await expect(enroll(nodeId, token, new NodeKey())).rejects.toMatchObject({ code: "expired_credential" });
    });

    it("cannot be repeated with the public key alone, without the private key", async () => {
      const { nodeId, token } = await nodeWithToken();
      const key = new NodeKey();
      await enroll(nodeId, token, key);
      const thief = new NodeKey().enrollRequest(nodeId, token);
      const request = { ...thief, signingKey: key.signingKey };
      await expect(enroll(nodeId, token, request)).rejects.toMatchObject({
        code: "invalid_request",
        param: "proof",
      });
    });

    // k3s-io/k3s#802: a password kept for the name shut the new machine out.
    it("that is new enrolls a reinstalled machine again, and the new key replaces the old one", async () => {
      const { node, key } = await fixture.createEnrolled("Box");
      const { token } = await fixture.enrollment.issueBootstrapToken(OWNER, node.id);
      const fresh = new NodeKey();
      await enroll(node.id, token, fresh);
      expect((await fixture.stores.nodes.find(node.id))?.signingKey).toEqual(fresh.signingKey);
      await expect(fixture.enrollment.renewIdentity(node.id, assertion(node.id, key))).rejects.toMatchObject({
        code: "invalid_credential",
      });
    });
  });

  function assertion(nodeId: string, key: NodeKey, changes: Record<string, unknown> = {}): string {
    const now = Math.floor(fixture.clock.now() / 1000);
    const claims = {
      iss: nodeId,
      sub: nodeId,
      aud: INSTALLATION.id,
      iat: now,
      exp: now + 60,
      jti: crypto.randomUUID(),
    };
    return key.sign({ ...claims, ...changes });
  }

  describe("renewing a node's identity", () => {
    it("accepts an assertion by the node's own key, with up to a minute of clock skew in both directions", async () => {
      const { node, key } = await fixture.createEnrolled("Box");
      const now = Math.floor(fixture.clock.now() / 1000);
      await expect(fixture.enrollment.renewIdentity(node.id, assertion(node.id, key))).resolves.toMatchObject({
        expiresIn: 24 * 3600,
      });
      for (const skew of [-55, 55]) {
        const skewed = assertion(node.id, key, { iat: now + skew, exp: now + skew + 60 });
        await expect(fixture.enrollment.renewIdentity(node.id, skewed)).resolves.toBeDefined();
      }
    });

    it("accepts the key of a node that was offline for years: it does not expire (tailscale/tailscale#16566)", async () => {
      const { node, key } = await fixture.createEnrolled("Box");
      fixture.clock.advance(3 * 365 * 24 * 3_600_000);
      await expect(fixture.enrollment.renewIdentity(node.id, assertion(node.id, key))).resolves.toBeDefined();
    });

    it("accepts an assertion only once", async () => {
      const { node, key } = await fixture.createEnrolled("Box");
      const once = assertion(node.id, key);
      await fixture.enrollment.renewIdentity(node.id, once);
      await expect(fixture.enrollment.renewIdentity(node.id, once)).rejects.toMatchObject({
        code: "invalid_credential",
      });
    });

    it.each([
      ["by another key", () => new NodeKey(), {}],
      ["for another node", null, { sub: "nod_other" }],
      ["for another installation", null, { aud: "ins_other" }],
      ["that has expired", null, { iat: 1_700_000_000, exp: 1_700_000_060 }],
      ["without an expiry", null, { exp: undefined }],
      ["without an ID", null, { jti: undefined }],
      ["with an ID that is too long to store", null, { jti: "x".repeat(129) }],
    ])("rejects an assertion %s", async (_what, otherKey, changes) => {
      const { node, key } = await fixture.createEnrolled("Box");
      const signed = assertion(node.id, otherKey?.() ?? key, changes);
      await expect(fixture.enrollment.renewIdentity(node.id, signed)).rejects.toMatchObject({
        code: "invalid_credential",
      });
    });

    it("tells only a deleted node's own daemon that the node was deleted", async () => {
      const { node, key } = await fixture.createEnrolled("Box");
      await fixture.nodeChanges.delete(OWNER, node.id);
      const asked = (by: NodeKey, id = node.id) => fixture.enrollment.renewIdentity(id, assertion(id, by));
      await expect(asked(key)).rejects.toMatchObject({ code: "node_deleted" });
      await expect(asked(new NodeKey())).rejects.toMatchObject({ code: "invalid_credential" });
      await expect(asked(key, "nod_never")).rejects.toMatchObject({ code: "invalid_credential" });
    });

    it("rejects a node that never enrolled", async () => {
      const { id } = await fixture.create("Box");
      await expect(fixture.enrollment.renewIdentity(id, assertion(id, new NodeKey()))).rejects.toMatchObject({
        code: "invalid_credential",
      });
    });
  });
});
