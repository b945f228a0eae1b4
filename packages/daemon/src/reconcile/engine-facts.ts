import { z } from "zod";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import { reasonOf } from "../log.ts";
import type { ImageFacts } from "../runtime/container-runtime.ts";
import type { EngineProbe, ProbeTarget } from "./health.ts";

const FACTS_TIMEOUT_MS = 5000;
const VERSION_LABEL = "org.opencontainers.image.version";

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).max(256) });
const versionSchema = z.union([
  z.object({ version: z.string() }).transform((answer) => answer.version),
  z.object({ build_info: z.string() }).transform((answer) => answer.build_info),
]);

/** Asks an engine over HTTP on its loopback port. */
export function createEngineProbe(http: HttpClient): EngineProbe {
  return {
    check: async (target, { models, completion }) => {
      try {
        const wrong = await checkPath(http, target);
        return wrong === null && completion ? await checkCompletion(http, target, models) : wrong;
      } catch (error) {
        return reasonOf(error);
      }
    },
    facts: async (target) => {
      const { health, models } = target.settings;
      // It may speak no HTTP at all.
      if (health.probe === "running")
        return { models: models ?? [], version: imageVersion(target.container.image, target.image) };
      return { models: models ?? (await readModels(http, target)), version: await readVersion(http, target) };
    },
  };
}

function urlOf(target: ProbeTarget, path: string): string {
  return `http://127.0.0.1:${target.port}${path}`;
}

async function checkPath(http: HttpClient, target: ProbeTarget): Promise<string | null> {
  const { path, timeoutSeconds } = target.settings.health;
  const { status } = await http({ method: "GET", url: urlOf(target, path), timeoutMs: timeoutSeconds * 1000 });
  return isSuccess(status) ? null : `${path} answered ${status}`;
}

/**
 * A real token: an engine may answer its health path while it cannot generate. One without a model has nothing to be asked, and
 * one that asks for a key of its own, or knows no chat, has answered well enough.
 */
async function checkCompletion(
  http: HttpClient,
  target: ProbeTarget,
  known: readonly string[],
): Promise<string | null> {
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
  return status < 500 ? null : `a completion answered ${status}`;
}

async function readModels(http: HttpClient, target: ProbeTarget): Promise<string[]> {
  const answer = await http({ method: "GET", url: urlOf(target, "/v1/models"), timeoutMs: FACTS_TIMEOUT_MS });
  if (answer.status === 404) return [];
  if (!isSuccess(answer.status)) throw new Error(`/v1/models answered ${answer.status}`);
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

/** @returns the version that an image tells: its label, else its tag, else "". */
export function imageVersion(reference: string, image: ImageFacts | null): string {
  const label = image?.labels[VERSION_LABEL];
  if (label) return label;
  const name = reference.slice(reference.lastIndexOf("/") + 1).replace(/@.*$/, "");
  return name.includes(":") ? name.slice(name.indexOf(":") + 1) : "";
}

/** @returns `sha256:…`: the registry's digest for this reference, else the image's id, else "". */
export function imageDigest(reference: string, image: ImageFacts | null): string {
  if (image === null) return "";
  const named = reference.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
  const matching = image.repoDigests.find((digest) => digest.startsWith(`${named}@`)) ?? image.repoDigests[0];
  return matching?.slice(matching.indexOf("@") + 1) ?? image.id;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
