import { z } from "zod";
import { type Container, RuntimeError } from "../container-runtime.ts";
import { engineWords, type Pulled, pullWords } from "./engine-words.ts";

/** Interprets Docker's responses. Pure. */

const portSchema = z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable();

const inspectSchema = z.object({
  Id: z.string(),
  Name: z.string(),
  Image: z.string(),
  Config: z.object({ Image: z.string(), Labels: z.record(z.string(), z.string()).nullable() }),
  State: z.object({
    Status: z.string(),
    ExitCode: z.number(),
    OOMKilled: z.boolean(),
    Error: z.string(),
    StartedAt: z.string(),
    FinishedAt: z.string(),
  }),
  HostConfig: z.object({ NetworkMode: z.string() }),
  NetworkSettings: z.object({ Ports: z.record(z.string(), portSchema).nullable() }),
});

const stateSchema = z.enum(["created", "running", "paused", "restarting", "removing", "exited", "dead"]);

export function containerOf(answer: unknown): Container {
  const { Id, Name, Image, Config, State, HostConfig, NetworkSettings } = inspectSchema.parse(answer);
  const state = stateSchema.safeParse(State.Status);
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    labels: Config.Labels ?? {},
    state: state.success ? state.data : "unknown",
    image: Config.Image,
    imageId: Image,
    network: HostConfig.NetworkMode,
    hostPort: loopbackPort(NetworkSettings.Ports ?? {}),
    startedAt: timeOf(State.StartedAt),
    finishedAt: timeOf(State.FinishedAt),
    exitCode: State.ExitCode,
    outOfMemory: State.OOMKilled,
    error: engineWords(State.Error),
  };
}

function loopbackPort(ports: Record<string, z.infer<typeof portSchema>>): number | null {
  const published = Object.values(ports).flatMap((bindings) => bindings ?? []);
  const port = Number(published.find((binding) => binding.HostIp === "127.0.0.1")?.HostPort ?? 0);
  return port > 0 ? port : null;
}

/** Docker uses year 1 for "never". @returns RFC 3339 with milliseconds, or null. */
function timeOf(text: string): string | null {
  const time = Date.parse(text);
  return Number.isNaN(time) || time <= 0 ? null : new Date(time).toISOString();
}

const summarySchema = z.array(
  z.object({
    Id: z.string(),
    Names: z.array(z.string()),
    Image: z.string(),
    ImageID: z.string(),
    HostConfig: z.object({ NetworkMode: z.string() }),
    Labels: z.record(z.string(), z.string()).nullable(),
  }),
);

/** Containers from a list response, which has fewer details than inspect. */
export function summariesOf(answer: unknown): Container[] {
  return summarySchema.parse(answer).map((summary) => ({
    id: summary.Id,
    name: (summary.Names[0] ?? "").replace(/^\//, ""),
    labels: summary.Labels ?? {},
    state: "unknown",
    image: summary.Image,
    imageId: summary.ImageID,
    network: summary.HostConfig.NetworkMode,
    hostPort: null,
    startedAt: null,
    finishedAt: null,
    exitCode: 0,
    outOfMemory: false,
    error: "",
  }));
}

/** Without a tag, Docker would pull all tags. */
export function withTag(reference: string): string {
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  return name.includes(":") || name.includes("@") ? reference : `${reference}:latest`;
}

/** For messages. */
export function registryHostOf(reference: string): string {
  const registry = registryOf(reference);
  return registry.startsWith("https:") ? "docker.io" : registry;
}

/** The registry of a reference: its first part if that is a host, else Docker Hub. */
export function registryOf(reference: string): string {
  const [host = ""] = reference.split("/");
  // Docker's rule: names on Docker Hub are lower-case.
  const isHost = reference.includes("/") && (/[.:A-Z]/.test(host) || host === "localhost");
  return isHost ? host : "https://index.docker.io/v1/";
}

const failureSchema = z.object({
  statusCode: z.number().optional(),
  json: z.object({ message: z.string() }).optional().catch(undefined),
  message: z.string(),
});

export function runtimeErrorOf(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  const parsed = failureSchema.safeParse(error);
  const status = parsed.data?.statusCode;
  const whole = parsed.data?.json?.message ?? parsed.data?.message ?? String(error);
  const said = whole.replace(/^\(HTTP code \d+\) .*? - /, "").trim();
  if (status === undefined) return new RuntimeError("unavailable", `the container engine does not respond: ${said}`);
  const told = { status, said };
  const message = engineWords(said);
  if (status === 404)
    return new RuntimeError(/no such image/i.test(said) ? "no-such-image" : "not-found", message, told);
  // An invalid name is a missing image. Treating it as an engine failure would block the whole node.
  if (status === 400 && /invalid reference format/i.test(said)) return new RuntimeError("no-such-image", message, told);
  return new RuntimeError(status === 409 ? "conflict" : "rejected", message, told);
}

/** Error of a failed pull. An unreachable engine stays `unavailable`. */
export function pullErrorOf(error: unknown, pulled: Pulled): RuntimeError {
  const { kind, message, status, said } = runtimeErrorOf(error);
  if (kind === "unavailable") return new RuntimeError("unavailable", message);
  return new RuntimeError("pull-failed", pullWords(said === "" ? message : said, pulled), { status, said });
}

/** Docker's log frames: one byte stream, three bytes padding, four bytes length, then the text. */
export function textOfLogs(framed: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= framed.length; ) {
    const end = at + 8 + framed.readUInt32BE(at + 4);
    parts.push(framed.subarray(at + 8, end));
    at = end;
  }
  return Buffer.concat(parts).toString("utf8");
}
