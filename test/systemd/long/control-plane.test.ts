import { nodeSchema } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { ledgerEntrySchema } from "../../../packages/control-plane/src/money/billing/ledger.ts";
import { costOf } from "../../../packages/inference/src/ports/prices.ts";
import { waitFor } from "../../support/wait-for.ts";
import { Box } from "../stage/box.ts";
import { BoxedPlatform } from "../stage/boxed-platform.ts";
import { Callers, type Delivered } from "../stage/callers.ts";
import { describeOnSystemd } from "../stage/field.ts";
import { differences, type Files, filesOf } from "../stage/files.ts";
import { judge, promisedExposure } from "../stage/units.ts";

const SOON_MS = 60_000;
const PRICES = { input: 3_000_001, output: 7_000_003, perRequest: 11 };
const MODELS = [{ name: "*", maxOutputTokens: 64, prices: PRICES }];
const CREDIT = 100_000_000_000;
const NODE = "attic";

const withProject = z.object({ project: z.object({ id: z.string() }) });
const withKey = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const keyPage = z.object({ keys: z.array(z.object({ id: z.string() })), nextPageToken: z.string() });
const ledgerPage = z.object({ ledgerEntries: z.array(ledgerEntrySchema), nextPageToken: z.string() });
const withBalance = z.object({ heldNanoDollars: z.number(), runningCalls: z.number() });
const models = z.object({ data: z.array(z.object({ id: z.string() })) });

/** The way of docs/install.md with two empty machines: the control plane on one, a node on the other; and back. */
describeOnSystemd("the control plane under systemd", () => {
  let platform: BoxedPlatform;
  let machine: Box;
  let empty: Files;
  let projectId = "";
  let key = "";

  beforeAll(async () => {
    machine = await Box.boot("bookworm");
    platform = await BoxedPlatform.unpack(await Box.boot("bookworm"));
    empty = await filesOf(platform.box);
  });

  afterAll(async () => {
    await platform?.box.remove();
    await machine?.remove();
  });

  const settled = async (): Promise<ReadonlyMap<string, readonly number[]>> => {
    const byCall = new Map<string, number[]>();
    let pageToken = "";
    do {
      const path = `/v1/projects/${projectId}/ledger?pageSize=200&pageToken=${pageToken}`;
      const page = await platform.call("GET", path, { schema: ledgerPage });
      for (const { kind, callId, amountNanoDollars } of page.ledgerEntries) {
        if (kind === "settle") byCall.set(callId ?? "", [...(byCall.get(callId ?? "") ?? []), -amountNanoDollars]);
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return byCall;
  };
  const balance = (): Promise<z.infer<typeof withBalance>> =>
    platform.call("GET", `/v1/projects/${projectId}/balance`, { schema: withBalance });

  test("is not changed by a dry run of its installer", async () => {
    expect(await platform.install("--dry-run")).toMatchObject({ code: 0, errors: "" });
    expect(differences(empty, await filesOf(platform.box))).toEqual([]);
  });

  test("listens after its installer finishes, which prints the first-admin setup link", async () => {
    const addresses = ["--public-url", platform.url, "--models-url", platform.modelsUrl];
    const { code, out, errors } = await platform.install(...addresses);
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(out).toContain("create the first administrator account at");
    expect(
      await platform.box.run(
        "curl -fsS http://127.0.0.1:8080/readyz >/dev/null && systemctl is-enabled fairlead-control-plane",
      ),
    ).toBe("enabled");
  });

  test("has a unit without mistakes that is no more exposed than docs/install.md says", async () => {
    const { mistakes, exposure } = await judge(platform.box, "fairlead-control-plane.service");
    expect(mistakes).toBe("");
    expect(exposure).toBeLessThanOrEqual(promisedExposure("control plane"));
  });

  test("has a node that serves after three commands", async () => {
    await platform.open({ FAIRLEAD_PROVIDERS_NODE_MODELS: JSON.stringify(MODELS) });
    projectId = (await platform.call("POST", "/v1/projects", { schema: withProject, body: { name: "Field" } })).project
      .id;
    const credit = { amountNanoDollars: CREDIT };
    await platform.call("POST", `/v1/projects/${projectId}/credits`, { schema: z.unknown(), body: credit });
    key = await newKey("caller").then(({ keyValue }) => keyValue);

    await platform.fairlead(`node create ${NODE} --preset fairlead-demo --project ${projectId}`);
    const token = await platform.fairlead(`node bootstrap-token ${NODE} --project ${projectId}`);
    await machine.run(`curl -fsSL ${platform.url}/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=${token} sh -s -- --insecure`);

    await waitFor("the node to be active", SOON_MS, async () => {
      const told = await platform.fairlead(`node get ${NODE} --project ${projectId} --json`);
      return nodeSchema.parse(JSON.parse(told)).status === "active";
    });
  });

  async function newKey(name: string): Promise<z.infer<typeof withKey>["key"]> {
    return (await platform.call("POST", `/v1/projects/${projectId}/keys`, { schema: withKey, body: { name } })).key;
  }

  async function modelName(): Promise<string> {
    const response = await fetch(`${platform.modelsUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    const found = models.parse(await response.json()).data.find(({ id }) => id.startsWith(`${NODE}/`));
    if (found === undefined) throw new Error("the node serves no model");
    return found.id;
  }

  test("restarts by itself after kill -9 under load: callers get their responses, no data is lost, and the ledger is correct", async () => {
    const callers = new Callers({ modelsUrl: platform.modelsUrl, key, model: await modelName() }, 4);
    await waitFor("answers", SOON_MS, async () => callers.delivered.length >= 8);
    const confirmed = [...callers.delivered];
    await waitFor("what they cost", SOON_MS, async () => {
      const byCall = await settled();
      return confirmed.every(({ requestId }) => byCall.has(requestId));
    });
    const made: string[] = [];
    const making = (async () => {
      for (;;) made.push((await newKey(`key ${made.length}`)).id);
    })().catch(() => undefined);
    await waitFor("some keys", SOON_MS, async () => made.length >= 5);

    const pid = await platform.mainPid();
    await platform.box.run(`kill -9 ${pid}`);
    await making;
    const atKill = callers.delivered.length;
    await waitFor("answers again", SOON_MS, async () => callers.delivered.length >= atKill + 8);
    await callers.stop();
    expect(await platform.mainPid()).not.toBe(pid);
    expect(callers.failed.length).toBeGreaterThan(0);

    const kept = await platform.call("GET", `/v1/projects/${projectId}/keys?pageSize=200`, { schema: keyPage });
    expect(kept.keys.map(({ id }) => id)).toEqual(expect.arrayContaining(made));
    await waitFor("the last calls", SOON_MS, async () => (await balance()).runningCalls === 0);
    expect((await balance()).heldNanoDollars).toBe(0);
    expect(JSON.parse(await platform.locally("admin check-ledger --json"))).toMatchObject({ projects: 1, wrong: [] });
    expectRightCharges(await settled(), { confirmed, all: callers.delivered });
  });

  test("is killed by the watchdog if its event loop hangs", async () => {
    await platform.box.run(`mkdir -p /run/systemd/system/fairlead-control-plane.service.d
      printf '[Service]\\nWatchdogSec=8\\n' >/run/systemd/system/fairlead-control-plane.service.d/watchdog.conf
      systemctl daemon-reload && systemctl restart fairlead-control-plane`);
    const pid = await platform.mainPid();
    await platform.box.blockEventLoop(pid, "/opt/fairlead/current/bin/node");
    await waitFor("another server", SOON_MS, async () => {
      const now = await platform.mainPid();
      return now !== "0" && now !== pid && (await fetch(`${platform.url}/readyz`)).ok;
    });
    expect(await platform.box.run("journalctl -u fairlead-control-plane -o cat --no-pager")).toContain(
      "Watchdog timeout",
    );
  });

  test("stays down with an invalid configuration, and reports the mistake", async () => {
    await platform.box.run("echo FAIRLEAD_SERVER_PLATFORM_PORT=many >>/etc/fairlead/control-plane.env");
    expect((await platform.box.try("systemctl restart fairlead-control-plane")).code).not.toBe(0);
    expect(
      await platform.box.run("systemctl show fairlead-control-plane --property=ExecMainStatus,ActiveState --value"),
    ).toBe("2\nfailed");
    expect(await platform.box.run("journalctl -u fairlead-control-plane -n 10 -o cat --no-pager")).toContain(
      "PLATFORM_PORT",
    );
  });

  test("leaves no files after --uninstall with --data", async () => {
    const { code, out, errors } = await platform.install("--uninstall", "--data");
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(differences(empty, await filesOf(platform.box))).toEqual([]);
  });
});

/** Nobody pays twice, and whoever had the answer well before the crash pays what it cost. */
function expectRightCharges(
  byCall: ReadonlyMap<string, readonly number[]>,
  { confirmed, all }: { readonly confirmed: readonly Delivered[]; readonly all: readonly Delivered[] },
): void {
  for (const amounts of byCall.values()) expect(amounts).toHaveLength(1);
  for (const call of confirmed)
    expect(byCall.get(call.requestId)).toEqual([costOf({ ...call, cachedInputTokens: 0 }, PRICES)]);
  const unpaid = all.filter(({ requestId }) => !byCall.has(requestId));
  expect(unpaid).toEqual([]);
}
