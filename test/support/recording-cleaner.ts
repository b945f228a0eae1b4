import { createHash } from "node:crypto";
import { enrollAnswerSchema, enrollRequestSchema, identityTokenSchema } from "@fairlead/protocol/enrollment";
import { type DesiredState, WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { z } from "zod";
import { workloadName } from "../../packages/control-plane/src/fleet/agents/definition/agent.ts";
import { mapStrings, type RecordedStep, type Recording, recordingSchema } from "./recording.ts";

export interface Placeholders {
  readonly nodeId: string;
  readonly bootstrapToken: string;
  readonly agentId: string;
}

/** Facts of a machine that does not exist, in the place of the recorder's own. */
const MACHINE = {
  operatingSystem: "Debian GNU/Linux 12",
  kernel: "6.1.0-30-amd64",
  architecture: "x64",
  hostName: "box",
  cpus: 4,
  memoryMb: 16_000,
  diskFreeMb: 200_000,
  dockerVersion: "20.10.24",
};
const helloFrame = z.looseObject({
  params: z.looseObject({
    path: z.literal("hello"),
    input: z.looseObject({
      daemonVersion: z.string(),
      protocolVersions: z.array(z.number()),
      host: z.object({ operatingSystem: z.string() }),
    }),
  }),
});
const stateFrame = z.object({
  result: z.object({
    data: z.object({ data: z.custom<DesiredState>((data) => z.object({ epoch: z.string() }).safeParse(data).success) }),
  }),
});
const tokenFrame = z.object({
  result: z.object({ data: z.object({ state: z.literal("issued"), token: z.string() }) }),
});
const JWT = /^eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+$/;
const claimsSchema = z.record(z.string(), z.unknown());

/** The recording with every id, token, key and fact of one installation replaced by what the player fills in. */
export function withoutIdentities(steps: readonly RecordedStep[], known: Placeholders): Recording {
  const names = new Map<string, string>([
    [known.bootstrapToken, "{bootstrapToken}"],
    [createHash("sha256").update(known.bootstrapToken).digest("hex"), "{bootstrapTokenSha256}"],
    [known.nodeId, "{nodeId}"],
    [known.agentId, "{agentId}"],
    [workloadName(known.agentId), "{agentName}"],
  ]);
  const said = { daemonVersion: "", protocolVersion: 0 };
  for (const step of steps) learn(step, { names, said });
  const longestFirst = [...names].toSorted(([a], [b]) => b.length - a.length);
  const change = (text: string): unknown => {
    const named = longestFirst.reduce((changed, [value, name]) => changed.replaceAll(value, name), text);
    const claims = JWT.exec(named)?.[1];
    return claims === undefined ? named : unsigned(claims, change);
  };
  return recordingSchema.parse({ ...said, steps: steps.map((step) => mapStrings(withMachine(step), change)) });
}

interface Learned {
  readonly names: Map<string, string>;
  readonly said: { daemonVersion: string; protocolVersion: number };
}

function learn(step: RecordedStep, { names, said }: Learned): void {
  if ("http" in step) {
    const request = enrollRequestSchema.safeParse(step.http.body);
    const answer = enrollAnswerSchema.safeParse(step.http.answer.body);
    const token = identityTokenSchema.safeParse(step.http.answer.body);
    const connect = workloadConnectSchema.safeParse(step.http.answer.body);
    if (request.success) {
      names.set(request.data.signingKey.x, "{signingKey}");
      names.set(request.data.sealingKey.x, "{sealingKey}");
    }
    if (answer.success)
      names.set(answer.data.projectId, "{projectId}").set(answer.data.installationId, "{installationId}");
    if (token.success) names.set(token.data.identityToken, "{identityToken}");
    if (connect.success) names.set(connect.data.authToken, "{connectToken}");
  }
  if ("daemon" in step) {
    const hello = helloFrame.safeParse(step.daemon);
    if (!hello.success) return;
    const { host, daemonVersion, protocolVersions } = hello.data.params.input;
    names.set(host.operatingSystem, MACHINE.operatingSystem);
    said.daemonVersion = daemonVersion;
    said.protocolVersion = Math.max(...protocolVersions);
  }
  if ("server" in step) {
    const token = tokenFrame.safeParse(step.server);
    if (token.success) names.set(token.data.result.data.token, "{workerToken}");
    const state = stateFrame.safeParse(step.server);
    if (!state.success) return;
    const { epoch, workloads } = state.data.result.data.data;
    names.set(epoch, "{epoch}");
    for (const { workloadId, workloadType } of workloads)
      if (workloadType === WORKLOAD_TYPE_ENGINE) names.set(workloadId, "{workloadId}");
  }
}

function withMachine(step: RecordedStep): RecordedStep {
  const hello = "daemon" in step ? helloFrame.safeParse(step.daemon) : null;
  if (!hello?.success) return step;
  const { params } = hello.data;
  return { daemon: { ...hello.data, params: { ...params, input: { ...params.input, host: MACHINE } } } };
}

function unsigned(claimsText: string, change: (text: string) => unknown): unknown {
  const all = claimsSchema.parse(JSON.parse(Buffer.from(claimsText, "base64url").toString("utf8")));
  const issuedAt = Number(all["iat"] ?? 0);
  const times = Object.entries(all).filter(([name]) => name === "iat" || name === "exp");
  const secondsFromNow = Object.fromEntries(times.map(([name, time]) => [name, Number(time) - issuedAt]));
  const rest = Object.entries(all).filter(([name]) => !(name in secondsFromNow));
  const claims = Object.fromEntries(
    rest.map(([name, claim]) => [name, name === "jti" ? "{unique}" : mapStrings(claim, change)]),
  );
  return { $sign: { claims, secondsFromNow } };
}
