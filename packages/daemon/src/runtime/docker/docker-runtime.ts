import { buffer } from "node:stream/consumers";
import { isImageReference } from "@fairlead/protocol/values/image-reference";
import Docker from "dockerode";
import { z } from "zod";
import {
  type Container,
  type ContainerPlan,
  type ContainerRuntime,
  type ImageFacts,
  type LogLine,
  type LogOptions,
  type Network,
  type NetworkPlan,
  noGateway,
  type Owner,
  type ProcessCount,
  type PullOptions,
  type RegistryCredentials,
  RuntimeError,
  type RuntimeVersion,
} from "../container-runtime.ts";
import { removeHelperImage, runHelper } from "../network-helper.ts";
import { networkName, ownerFilter } from "../ownership.ts";
import { DEFAULT_WORKLOAD_SUBNETS } from "../subnets.ts";
import {
  containerOf,
  pullErrorOf,
  registryHostOf,
  registryOf,
  runtimeErrorOf,
  summariesOf,
  textOfLogs,
  withTag,
} from "./docker-answers.ts";
import { followEvents } from "./docker-events.ts";
import { linesOf, logQuery } from "./docker-logs.ts";
import { createNetwork, findNetwork, listNetworks } from "./docker-networks.ts";
import { followPull } from "./docker-pull.ts";
import { containerBody } from "./docker-spec.ts";
import { lookUpUser, userPart } from "./docker-user.ts";
import { type Pulled, pullWords } from "./engine-words.ts";

const ASK_MS = 10_000;
const CHANGE_MS = 60_000;
/** Time limit of a stop beyond the grace period; after that it failed and the container keeps its resources (amazon-ecs-agent#2874). */
const STOP_MARGIN_MS = 15_000;

const versionSchema = z.object({
  ID: z.string(),
  ServerVersion: z.string(),
  DockerRootDir: z.string(),
  HttpsProxy: z.string().default(""),
});
const userSchema = z.object({ Config: z.object({ User: z.string() }) });
const volumesSchema = z.object({ Volumes: z.array(z.object({ Name: z.string() })).nullish() });
const imageSchema = z.object({
  Id: z.string(),
  RepoDigests: z.array(z.string()).nullable(),
  RepoTags: z.array(z.string()).nullish(),
  Config: z
    .object({
      Labels: z.record(z.string(), z.string()).nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
    })
    .nullish(),
});
const statsSchema = z.object({ pids_stats: z.object({ current: z.number(), limit: z.number() }) });

/** Docker Engine over its Unix socket. */
export class DockerRuntime implements ContainerRuntime {
  readonly #docker: Docker;
  readonly #workloadSubnets: string;

  /** @param workloadSubnets address pool for workload networks. */
  constructor(socketPath: string, workloadSubnets: string = DEFAULT_WORKLOAD_SUBNETS) {
    this.#workloadSubnets = workloadSubnets;
    // `host` stays unset, so that DOCKER_HOST in the environment has no effect.
    this.#docker = new Docker({ socketPath, host: undefined, protocol: "http" });
  }

  async version(): Promise<RuntimeVersion> {
    const info = versionSchema.parse(await within(ASK_MS, () => this.#docker.info()));
    return {
      id: info.ID,
      version: info.ServerVersion,
      rootFolder: info.DockerRootDir,
      usesProxy: info.HttpsProxy !== "",
    };
  }

  networks(owner: Owner): Promise<Network[]> {
    return within(ASK_MS, (abortSignal) => listNetworks(this.#docker, owner, abortSignal));
  }

  async addNetwork(plan: NetworkPlan): Promise<void> {
    const pool = this.#workloadSubnets;
    await within(CHANGE_MS, (abortSignal) => createNetwork(this.#docker, { ...plan, pool }, abortSignal));
  }

  async removeNetwork(id: string): Promise<void> {
    await unless(404, () => within(CHANGE_MS, (abortSignal) => this.#docker.getNetwork(id).remove({ abortSignal })));
  }

  /** Runs a shell script with permission to change this machine's network. @returns its output. */
  changeNetwork(owner: Owner, script: string): Promise<string> {
    return within(CHANGE_MS, (abortSignal) => runHelper(this.#docker, { owner, script }, abortSignal));
  }

  async removeHelperImage(): Promise<void> {
    await within(CHANGE_MS, () => removeHelperImage(this.#docker));
  }

  async list(owner: Owner): Promise<Container[]> {
    const label = ownerFilter(owner);
    const answer = await within(ASK_MS, (abortSignal) =>
      this.#docker.listContainers({ all: true, filters: { label }, abortSignal }),
    );
    const containers = await Promise.all(summariesOf(answer).map((summary) => this.#detail(summary)));
    return containers.filter((container) => container !== null);
  }

  /** A container that cannot be inspected must not hide the others (kubernetes#94829). */
  async #detail(summary: Container): Promise<Container | null> {
    try {
      return await this.inspect(summary.id);
    } catch {
      return summary;
    }
  }

  inspect(nameOrId: string): Promise<Container | null> {
    return orNull("not-found", async () =>
      containerOf(await within(ASK_MS, (abortSignal) => this.#docker.getContainer(nameOrId).inspect({ abortSignal }))),
    );
  }

  async image(reference: string): Promise<ImageFacts | null> {
    // The client does not escape it in the path and follows the redirect for `//` to a host of that name.
    if (!isImageReference(reference)) return null;
    return orNull("no-such-image", async () => {
      const answer = await within(ASK_MS, () => this.#docker.getImage(reference).inspect());
      const { Id, RepoDigests, RepoTags, Config } = imageSchema.parse(answer);
      const start = { entrypoint: Config?.Entrypoint ?? [], command: Config?.Cmd ?? [] };
      return { id: Id, repoDigests: RepoDigests ?? [], tags: RepoTags ?? [], labels: Config?.Labels ?? {}, start };
    });
  }

  async pull(reference: string, options: PullOptions): Promise<void> {
    if (!isImageReference(reference)) throw new RuntimeError("pull-failed", `${reference} is not a valid image name`);
    const fromImage = withTag(reference);
    const giveUp = AbortSignal.any([options.signal, AbortSignal.timeout(options.inactivityMs)]);
    const signals = { opening: giveUp, pulling: options.signal };
    const pulled = { image: fromImage, registry: registryHostOf(fromImage), withLogin: options.credentials !== null };
    const stream = await this.#openPull(pulled, options.credentials, signals);
    await followPull(stream, options).catch((error: unknown) => {
      throw pullErrorOf(error, pulled);
    });
    if ((await this.image(fromImage)) === null) {
      throw new RuntimeError("pull-failed", `the pull finished, but ${fromImage} is missing`);
    }
  }

  /** Opening a pull has its own time limit, because there is no progress until its first line. */
  async #openPull(
    pulled: Pulled,
    credentials: RegistryCredentials | null,
    signals: { opening: AbortSignal; pulling: AbortSignal },
  ): Promise<NodeJS.ReadableStream> {
    const cancel = new AbortController();
    const abort = (): void => cancel.abort();
    signals.pulling.addEventListener("abort", abort);
    signals.opening.addEventListener("abort", abort);
    try {
      // Credentials are sent in a header, never in the URL.
      const auth = credentials && { ...credentials, serveraddress: registryOf(pulled.image) };
      return await this.#docker.createImage(auth ?? undefined, { fromImage: pulled.image, abortSignal: cancel.signal });
    } catch (error) {
      const failure = pullErrorOf(error, pulled);
      if (failure.kind !== "unavailable" || !signals.opening.aborted) throw failure;
      throw new RuntimeError("pull-failed", pullWords("i/o timeout", pulled));
    } finally {
      signals.opening.removeEventListener("abort", abort);
    }
  }

  async imagesInUse(): Promise<ReadonlySet<string>> {
    const answer = await within(ASK_MS, (abortSignal) => this.#docker.listContainers({ all: true, abortSignal }));
    return new Set(summariesOf(answer).map((container) => container.imageId));
  }

  async removeImage(reference: string): Promise<void> {
    // Never forced: the engine must reject it if a container uses the image (kubernetes#123631).
    await unless(404, () =>
      within(CHANGE_MS, (abortSignal) => this.#docker.getImage(reference).remove({ abortSignal })),
    );
  }

  async create(plan: ContainerPlan): Promise<string> {
    // Only `_query` goes into the URL: otherwise environment values would appear in the engine's log.
    const name = networkName(plan.owner.nodeId, plan.spec);
    const { gateway } = await within(ASK_MS, () => findNetwork(this.#docker, name));
    if (gateway === "" && plan.spec.network.platform?.forwarded) throw new RuntimeError("rejected", noGateway(name));
    const options = { _query: { name: plan.name }, _body: containerBody(plan, gateway) };
    const container = await within(CHANGE_MS, (abortSignal) =>
      this.#docker.createContainer({ ...options, abortSignal }),
    );
    return container.id;
  }

  async userOf(id: string): Promise<number> {
    const container = this.#docker.getContainer(id);
    const answer = await within(ASK_MS, (abortSignal) => container.inspect({ abortSignal }));
    const user = userPart(userSchema.parse(answer).Config.User);
    if (typeof user === "number") return user;
    // Read from the created container, because files of an image cannot be read.
    const archive = await orNull("not-found", () =>
      within(ASK_MS, async (abortSignal) => buffer(await container.getArchive({ path: "/etc/passwd", abortSignal }))),
    );
    const uid = archive && lookUpUser(user, archive);
    if (uid === null) throw new RuntimeError("rejected", `the image's user "${user}" is not in its /etc/passwd`);
    return uid;
  }

  async start(id: string): Promise<void> {
    await unless(304, () => within(CHANGE_MS, (abortSignal) => this.#docker.getContainer(id).start({ abortSignal })));
  }

  async processes(id: string): Promise<ProcessCount | null> {
    // `one-shot` skips a second CPU sample, which would take one second.
    const options = { stream: false as const, "one-shot": true };
    const answer = await within(ASK_MS, () => this.#docker.getContainer(id).stats(options));
    // Without a limit or a control group there is nothing to compare.
    const { pids_stats: pids } = statsSchema.safeParse(answer).data ?? {};
    return pids === undefined ? null : { count: pids.current, limit: pids.limit };
  }

  async stop(id: string, graceSeconds: number): Promise<void> {
    const limit = graceSeconds * 1000 + STOP_MARGIN_MS;
    await unless(304, () =>
      within(limit, (abortSignal) => this.#docker.getContainer(id).stop({ t: graceSeconds, abortSignal })),
    );
  }

  async remove(id: string): Promise<void> {
    await unless(404, () =>
      within(CHANGE_MS, (abortSignal) => this.#docker.getContainer(id).remove({ v: true, abortSignal })),
    );
  }

  /** Removes the owner's volumes. @returns the names of volumes in use, which are kept. */
  async removeVolumes(owner: Owner): Promise<readonly string[]> {
    const filters = JSON.stringify({ label: ownerFilter(owner) });
    const { Volumes } = volumesSchema.parse(await within(ASK_MS, () => this.#docker.listVolumes({ filters })));
    const used: string[] = [];
    for (const { Name } of Volumes ?? []) {
      const gone = await orNull("conflict", async () => {
        await unless(404, () => within(CHANGE_MS, () => this.#docker.getVolume(Name).remove()));
        return true;
      });
      if (gone === null) used.push(Name);
    }
    return used;
  }

  async logs(id: string, tail: number): Promise<string> {
    const options = { stdout: true, stderr: true, follow: false as const, tail };
    return textOfLogs(
      await within(ASK_MS, (abortSignal) => this.#docker.getContainer(id).logs({ ...options, abortSignal })),
    );
  }

  async *followLogs(id: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine> {
    // The client keeps a listener on this signal during the whole stream, so it must not be the caller's.
    const cancel = new AbortController();
    const abort = (): void => cancel.abort();
    signal.addEventListener("abort", abort, { once: true });
    try {
      if (signal.aborted) return;
      const ask = { stdout: true, stderr: true, timestamps: true, ...logQuery(options), abortSignal: cancel.signal };
      yield* linesOf(await this.#docker.getContainer(id).logs(ask as Docker.ContainerLogsOptions & { follow: true }));
    } catch (error) {
      if (!signal.aborted) throw runtimeErrorOf(error);
    } finally {
      signal.removeEventListener("abort", abort);
      cancel.abort();
    }
  }

  watch(owner: Owner, onChange: () => void, signal: AbortSignal): void {
    const filters = { type: ["container"], label: ownerFilter(owner) };
    const open = async (since: number | null, abortSignal: AbortSignal): Promise<NodeJS.ReadableStream> =>
      this.#docker.getEvents({ filters, ...(since === null ? {} : { since }), abortSignal } as Docker.GetEventsOptions);
    void followEvents({ open, onChange, signal });
  }
}

/** One attempt with a time limit: a truncated response would otherwise hang forever. */
async function within<T>(milliseconds: number, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    expired.reject(
      new RuntimeError("unavailable", `the container engine did not respond within ${milliseconds / 1000} s`),
    );
    limit.abort();
  }, milliseconds);
  try {
    return await Promise.race([attempt(limit.signal), expired.promise]);
  } catch (error) {
    throw runtimeErrorOf(error);
  } finally {
    clearTimeout(timer);
  }
}

async function orNull<T>(kind: RuntimeError["kind"], ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === kind) return null;
    throw error;
  }
}

/** 304 and 404 mean that there is nothing to do. */
async function unless(status: 304 | 404, change: () => Promise<unknown>): Promise<void> {
  try {
    await change();
  } catch (error) {
    if (error instanceof RuntimeError && error.status === status) return;
    throw error;
  }
}
