import { z } from "zod";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import type { ImageFacts } from "../runtime/container-runtime.ts";
import type { EngineProbe, ProbeFailure, ProbeTarget } from "./health.ts";

const FACTS_TIMEOUT_MS = 5000;
const VERSION_LABEL = "org.opencontainers.image.version";

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string().max(256) })).max(256) });
const versionSchema = z.union([
  z.object({ version: z.string() }).transform((answer) => answer.version),
  z.object({ build_info: z.string() }).transform((answer) => answer.build_info),
]);

/** Probes an engine over HTTP on its loopback port. */
export function createEngineProbe(http: HttpClient): EngineProbe {
  return {
    check: async (target, { models, completion }) => {
      try {
        const wrong = await checkPath(http, target);
        return wrong === null && completion ? await checkCompletion(http, target, models) : wrong;
      } catch (error) {
        return { words: connectionWords(error), mayBeLoading: true };
      }
    },
    facts: async (target) => {
      const { health, models } = target.settings;
      // The engine may not speak HTTP.
      if (health.probe === "running")
        return { models: models ?? [], version: imageVersion(target.container.image, target.image) };
      return { models: models ?? (await readModels(http, target)), version: await readVersion(http, target) };
    },
  };
}

function urlOf(target: ProbeTarget, path: string): string {
  return `http://127.0.0.1:${target.port}${path}`;
}

/** Until the program listens, Docker's proxy accepts connections and drops them. */
function connectionWords(error: unknown): string {
  const cause = error instanceof Error ? error.cause : null;
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  switch (code) {
    case "ECONNREFUSED":
      return "not listening on its port";
    case "ECONNRESET":
    case "EPIPE":
      return "closes connections without a response";
    default:
      if (error instanceof z.ZodError) return "returned an invalid model list";
      return error instanceof Error ? error.message.replace(/^.*?: /, "") : String(error);
  }
}

async function checkPath(http: HttpClient, target: ProbeTarget): Promise<ProbeFailure | null> {
  const { path, timeoutSeconds } = target.settings.health;
  const { status } = await http({ method: "GET", url: urlOf(target, path), timeoutMs: timeoutSeconds * 1000 });
  return isSuccess(status) ? null : { words: `${path} returned ${status}`, mayBeLoading: status === 503 };
}

/**
 * Requests one token: an engine may pass its health path but fail to generate. Engines without a model,
 * with their own API key or without a chat route pass.
 */
async function checkCompletion(
  http: HttpClient,
  target: ProbeTarget,
  known: readonly string[],
): Promise<ProbeFailure | null> {
  const { health, models } = target.settings;
  if (health.probe !== "completion") return null;
  const model = known[0] ?? models?.[0] ?? (await readModels(http, target))[0];
  if (model === undefined) return null;
  const { status } = await http({
    method: "POST",
    url: urlOf(target, "/v1/chat/completions"),
    body: { model, messages: [{ role: "user", content: "ping" }], max_tokens: 1 },
    timeoutMs: health.timeoutSeconds * 1000,
  });
  return status < 500 ? null : { words: `a completion returned ${status}`, mayBeLoading: status === 503 };
}

async function readModels(http: HttpClient, target: ProbeTarget): Promise<string[]> {
  const answer = await http({ method: "GET", url: urlOf(target, "/v1/models"), timeoutMs: FACTS_TIMEOUT_MS });
  if (answer.status === 404) return [];
  if (!isSuccess(answer.status)) throw new Error(`/v1/models returned ${answer.status}`);
  return modelsSchema.parse(jsonOf(answer)).data.map((model) => model.id);
}

async function readVersion(http: HttpClient, target: ProbeTarget): Promise<string> {
  const { versionPath } = target.settings;
  if (versionPath !== null) {
    const answer = await http({ method: "GET", url: urlOf(target, versionPath), timeoutMs: FACTS_TIMEOUT_MS });
    const told = versionSchema.safeParse(jsonOf(answer));
    if (isSuccess(answer.status) && told.success && told.data !== "") return told.data.slice(0, 128);
  }
  return imageVersion(target.container.image, target.image);
}

/** @returns the image's version: its label, else its tag, else "". */
export function imageVersion(reference: string, image: ImageFacts | null): string {
  const label = image?.labels[VERSION_LABEL];
  if (label) return label;
  const name = withoutDigest(reference.slice(reference.lastIndexOf("/") + 1));
  return name.includes(":") ? name.slice(name.indexOf(":") + 1) : "";
}

/** @returns `sha256:…`: the registry's digest for this reference, else the image ID, else "". */
export function imageDigest(reference: string, image: ImageFacts | null): string {
  if (image === null) return "";
  const named = withoutDigest(reference).replace(/:[^/:]*$/, "");
  const matching = image.repoDigests.find((digest) => digest.startsWith(`${named}@`)) ?? image.repoDigests[0];
  return matching?.slice(matching.indexOf("@") + 1) ?? image.id;
}

function withoutDigest(reference: string): string {
  const at = reference.indexOf("@");
  return at === -1 ? reference : reference.slice(0, at);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
