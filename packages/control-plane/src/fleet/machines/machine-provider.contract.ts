import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Machine, MachineProvider, MachineRequest, RefusalKind } from "./machine-provider.ts";

/** An account with a provider, empty at first. */
export interface ProviderAccount {
  readonly provider: MachineProvider;
  /** Of another installation with the same account. */
  readonly neighbour: MachineProvider;
  readonly token: string;
  readonly type: string;
  readonly location: string;
  /** What an id of this provider looks like that no machine has. */
  readonly missingId: string;
  close(): Promise<void>;
}

const UP_MS = 30_000;

/** What every machine provider keeps to, whoever rents the machines out. */
export function machineProviderContract(name: string, open: () => Promise<ProviderAccount>): void {
  describe(`${name}, as a machine provider`, () => {
    let account: ProviderAccount;
    let names = 0;

    beforeAll(async () => {
      account = await open();
    });

    afterAll(() => account?.close());

    function aRequest(changes: Partial<MachineRequest> = {}): MachineRequest {
      const { type, location } = account;
      const number = ++names;
      const userData = "#!/bin/sh\ntrue\n";
      return {
        label: `mrq_${number}`,
        name: `contract-${process.pid}-${number}`,
        type,
        location,
        userData,
        ...changes,
      };
    }

    const create = (changes: Partial<MachineRequest> = {}): Promise<Machine> =>
      account.provider.create(account.token, aRequest(changes));

    /** Asks whoever made it: nobody else sees it. */
    async function untilGone(id: string, by = account.provider): Promise<void> {
      await expect.poll(() => by.get(account.token, id), { timeout: UP_MS }).toBeNull();
    }

    async function refused(work: Promise<unknown>, kind: RefusalKind): Promise<void> {
      const providerWords = expect.stringMatching(/./);
      await expect(work).rejects.toMatchObject({ name: "ProviderRefusal", kind, providerWords });
    }

    test("lists its machine types, with sizes and locations", async () => {
      const { provider, token, type, location } = account;
      const plan = (await provider.plans(token)).find((each) => each.type === type);
      expect(plan?.locations).toContainEqual(expect.objectContaining({ name: location, available: true }));
      expect(plan).toMatchObject({ cores: expect.any(Number), memoryMb: expect.any(Number), gpu: null });
      expect(Math.min(plan?.cores ?? 0, plan?.memoryMb ?? 0)).toBeGreaterThan(0);
    });

    test("a machine is created, starts with an address, is found by its label, and can be deleted", async () => {
      const { provider, token, location } = account;
      const before = Date.now();
      const { id, label, createdAt } = await create();
      expect(Math.abs(createdAt - before)).toBeLessThan(60_000);
      const up = { id, label, location, state: "running", ip: expect.stringMatching(/^\d+\./), failure: null };
      await expect.poll(() => provider.get(token, id), { timeout: UP_MS }).toMatchObject(up);
      expect(await provider.findByLabel(token, label)).toMatchObject([{ id, label }]);
      await provider.delete(token, id);
      await untilGone(id);
      expect(await provider.findByLabel(token, label)).toEqual([]);
    });

    test("deleting a machine that is gone, or never existed, succeeds", async () => {
      const { provider, token, missingId } = account;
      const { id } = await create();
      await provider.delete(token, id);
      await provider.delete(token, id);
      await untilGone(id);
      await provider.delete(token, id);
      await provider.delete(token, missingId);
      expect(await provider.get(token, missingId)).toBeNull();
    });

    test("a second machine with the same name is refused", async () => {
      const { provider, token } = account;
      const request = aRequest();
      const { id } = await provider.create(token, request);
      await refused(provider.create(token, request), "already_exists");
      expect((await provider.findByLabel(token, request.label)).map((machine) => machine.id)).toEqual([id]);
      await provider.delete(token, id);
      await untilGone(id);
    });

    test.each([
      ["of an unknown type", { type: "no-such-type" }],
      ["in an unknown location", { location: "no-such-place" }],
      ["with more user data than fits", { userData: "ü".repeat(16 * 1024 + 1) }],
    ])("a machine %s is rejected as bad input and not created", async (_, changes) => {
      const { provider, token } = account;
      const request = aRequest(changes);
      await refused(provider.create(token, request), "bad_input");
      expect(await provider.findByLabel(token, request.label)).toEqual([]);
    });

    test("lists all machines of its own installation, and none of another", async () => {
      const { provider, neighbour, token } = account;
      const own = await Promise.all([create(), create(), create()]);
      const foreign = await neighbour.create(token, aRequest());
      const seen = await provider.findByLabel(token, null);
      expect(seen.map(({ id }) => id).toSorted()).toEqual(own.map(({ id }) => id).toSorted());
      expect(await provider.findByLabel(token, foreign.label)).toEqual([]);
      expect(await neighbour.findByLabel(token, null)).toMatchObject([{ id: foreign.id }]);
      for (const { id } of own) await provider.delete(token, id);
      await neighbour.delete(token, foreign.id);
      await Promise.all(own.map(({ id }) => untilGone(id)));
      await untilGone(foreign.id, neighbour);
    });

    test("never touches a machine of another installation", async () => {
      const { provider, neighbour, token } = account;
      const { id } = await neighbour.create(token, aRequest());
      expect(await provider.get(token, id)).toBeNull();
      await provider.delete(token, id);
      await expect.poll(() => neighbour.get(token, id), { timeout: UP_MS }).toMatchObject({ state: "running" });
      await neighbour.delete(token, id);
      await untilGone(id, neighbour);
    });

    test("an invalid token, where one is required, is refused by every call, and no error repeats it", async () => {
      const { provider, missingId } = account;
      const bad = "wrong-token-".padEnd(64, "w");
      if (!provider.needsToken) {
        expect(await provider.checkToken(bad)).toBeUndefined();
        return;
      }
      const calls = [
        () => provider.checkToken(bad),
        () => provider.create(bad, aRequest()),
        () => provider.get(bad, missingId),
        () => provider.delete(bad, missingId),
        () => provider.findByLabel(bad, null),
      ];
      for (const call of calls) {
        const refusal = await call().catch((error: unknown) => error);
        expect(refusal).toMatchObject({ name: "ProviderRefusal", kind: "bad_token" });
        expect(String(refusal)).not.toContain(bad);
      }
    });
  });
}
