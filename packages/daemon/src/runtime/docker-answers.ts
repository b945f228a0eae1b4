import { z } from "zod";
import { type Container, RuntimeError } from "./container-runtime.ts";

/** What Docker's answers mean. Pure. */

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
  NetworkSettings: z.object({ Ports: z.record(z.string(), portSchema).nullable() }),
});

const stateSchema = z.enum(["created", "running", "paused", "restarting", "removing", "exited", "dead"]);

export function containerOf(answer: unknown): Container {
  const { Id, Name, Image, Config, State, NetworkSettings } = inspectSchema.parse(answer);
  const state = stateSchema.safeParse(State.Status);
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    labels: Config.Labels ?? {},
    state: state.success ? state.data : "unknown",
    image: Config.Image,
    imageId: Image,
    hostPort: loopbackPort(NetworkSettings.Ports ?? {}),
    startedAt: timeOf(State.StartedAt),
    finishedAt: timeOf(State.FinishedAt),
    exitCode: State.ExitCode,
    outOfMemory: State.OOMKilled,
    error: State.Error,
  };
}

function loopbackPort(ports: Record<string, z.infer<typeof portSchema>>): number | null {
  const published = Object.values(ports).flatMap((bindings) => bindings ?? []);
  const port = Number(published.find((binding) => binding.HostIp === "127.0.0.1")?.HostPort ?? 0);
  return port > 0 ? port : null;
}

/** Docker says year 1 for "never". @returns RFC 3339 with milliseconds, or null. */
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
    Labels: z.record(z.string(), z.string()).nullable(),
  }),
);

/** The containers of a list answer, each as far as a list can tell. */
export function summariesOf(answer: unknown): Container[] {
  return summarySchema.parse(answer).map((summary) => ({
    id: summary.Id,
    name: (summary.Names[0] ?? "").replace(/^\//, ""),
    labels: summary.Labels ?? {},
    state: "unknown",
    image: summary.Image,
    imageId: summary.ImageID,
    hostPort: null,
    startedAt: null,
    finishedAt: null,
    exitCode: 0,
    outOfMemory: false,
    error: "",
  }));
}

const HOST = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::\d+)?`;
const PART = String.raw`[a-z0-9]+(?:[._-]+[a-z0-9]+)*`;
const REFERENCE = new RegExp(
  String.raw`^(?:${HOST}/)?${PART}(?:/${PART})*(?::\w[\w.-]{0,127})?(?:@[A-Za-z0-9+._-]+:[0-9A-Fa-f]+)?$`,
);

/**
 * Whether it can be an image's name, or its id. Docker's client puts it into a path as it is, so that `..` would ask for something
 * else, and follows the redirect that `//` is answered with, to a host of that name.
 */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

/** Without a tag Docker would pull every tag there is. */
export function withTag(reference: string): string {
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  return name.includes(":") || name.includes("@") ? reference : `${reference}:latest`;
}

/** The registry that a reference names: its first part where that is a host, else Docker Hub. */
export function registryOf(reference: string): string {
  const [host = ""] = reference.split("/");
  const isHost = reference.includes("/") && (/[.:]/.test(host) || host === "localhost");
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
  const said = parsed.data?.json?.message ?? parsed.data?.message ?? String(error);
  const message = said.replace(/^\(HTTP code \d+\) .*? - /, "").trim();
  if (status === undefined)
    return new RuntimeError("unavailable", `the container engine cannot be asked: ${message}`, { cause: error });
  if (status === 404)
    return new RuntimeError(/no such image/i.test(message) ? "no-such-image" : "not-found", message, { cause: error });
  // What cannot be a name names no image. Were it taken for a fault of the engine, one wrong word would stop the whole node.
  if (status === 400 && /invalid reference format/i.test(message))
    return new RuntimeError("no-such-image", message, { cause: error });
  return new RuntimeError(status === 409 ? "conflict" : "rejected", message, { cause: error });
}

/** Docker frames a container's output: one byte of stream, three of padding, four of length, then the text. */
export function textOfLogs(framed: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= framed.length; ) {
    const end = at + 8 + framed.readUInt32BE(at + 4);
    parts.push(framed.subarray(at + 8, end));
    at = end;
  }
  return Buffer.concat(parts).toString("utf8");
}
