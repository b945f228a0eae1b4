import { buffer } from "node:stream/consumers";
import Docker from "dockerode";
import { z } from "zod";
import {
  type Bridge,
  type Container,
  type ContainerPlan,
  type ContainerRuntime,
  type ImageFacts,
  type LogLine,
  type LogOptions,
  type Owner,
  type PullOptions,
  type RegistryCredentials,
  RuntimeError,
  type RuntimeVersion,
} from "./container-runtime.ts";
import {
  containerOf,
  isReference,
  registryOf,
  runtimeErrorOf,
  summariesOf,
  textOfLogs,
  withTag,
} from "./docker-answers.ts";
import { followEvents } from "./docker-events.ts";
import { linesOf, logQuery } from "./docker-logs.ts";
import { followPull } from "./docker-pull.ts";
import { containerBody } from "./docker-spec.ts";
import { lookUpUser, userPart } from "./docker-user.ts";
import { LABELS } from "./ownership.ts";

const ASK_MS = 10_000;
const CHANGE_MS = 60_000;
/** Beyond the grace a stop may take this long; then it has failed, and the container still holds what it holds (amazon-ecs-agent#2874). */
const STOP_MARGIN_MS = 15_000;

const versionSchema = z.object({ ServerVersion: z.string(), DockerRootDir: z.string() });
const userSchema = z.object({ Config: z.object({ User: z.string() }) });
const networkSchema = z.object({
  IPAM: z.object({
    Config: z.array(z.object({ Gateway: z.string().optional(), Subnet: z.string().optional() })).nullish(),
  }),
});
const volumesSchema = z.object({ Volumes: z.array(z.object({ Name: z.string() })).nullish() });
const imageSchema = z.object({
  Id: z.string(),
  RepoDigests: z.array(z.string()).nullable(),
  RepoTags: z.array(z.string()).nullish(),
  Config: z.object({ Labels: z.record(z.string(), z.string()).nullish() }).nullish(),
});

/** Docker Engine over its Unix socket. */
export class DockerRuntime implements ContainerRuntime {
  readonly #docker: Docker;

  constructor(socketPath: string) {
    // `host` unset: an environment's DOCKER_HOST must not send workloads elsewhere.
    this.#docker = new Docker({ socketPath, host: undefined, protocol: "http" });
  }

  async version(): Promise<RuntimeVersion> {
    const info = versionSchema.parse(await within(ASK_MS, () => this.#docker.info()));
    return { version: info.ServerVersion, rootFolder: info.DockerRootDir };
  }

  async bridge(): Promise<Bridge | null> {
    const network = this.#docker.getNetwork("bridge");
    const answer = await orNull("not-found", () => within(ASK_MS, () => network.inspect()));
    const nets = answer === null ? [] : (networkSchema.parse(answer).IPAM.Config ?? []);
    const [bridge] = nets.flatMap(({ Gateway, Subnet }) =>
      Gateway && Subnet ? [{ address: Gateway, subnet: Subnet }] : [],
    );
    return bridge ?? null;
  }

  async list(owner: Owner): Promise<Container[]> {
    const label = ownerFilter(owner);
    const answer = await within(ASK_MS, (abortSignal) =>
      this.#docker.listContainers({ all: true, filters: { label }, abortSignal }),
    );
    const containers = await Promise.all(summariesOf(answer).map((summary) => this.#detail(summary)));
    return containers.filter((container) => container !== null);
  }

  /** One container that cannot be inspected must not hide the others (kubernetes#94829). */
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
    if (!isReference(reference)) return null;
    return orNull("no-such-image", async () => {
      const answer = await within(ASK_MS, () => this.#docker.getImage(reference).inspect());
      const { Id, RepoDigests, RepoTags, Config } = imageSchema.parse(answer);
      return { id: Id, repoDigests: RepoDigests ?? [], tags: RepoTags ?? [], labels: Config?.Labels ?? {} };
    });
  }

  async pull(reference: string, options: PullOptions): Promise<void> {
    const fromImage = withTag(reference);
    const giveUp = AbortSignal.any([options.signal, AbortSignal.timeout(options.inactivityMs)]);
    const signals = { opening: giveUp, pulling: options.signal };
    const stream = await this.#openPull(fromImage, options.credentials, signals);
    await followPull(stream, options);
    if ((await this.image(fromImage)) === null) {
      throw new RuntimeError("pull-failed", `the pull ended, but ${fromImage} is not here`);
    }
  }

  /** Until its first line a pull has no stream to watch, so opening it has a limit of its own. */
  async #openPull(
    fromImage: string,
    credentials: RegistryCredentials | null,
    signals: { opening: AbortSignal; pulling: AbortSignal },
  ): Promise<NodeJS.ReadableStream> {
    const cancel = new AbortController();
    const abort = (): void => cancel.abort();
    signals.pulling.addEventListener("abort", abort);
    signals.opening.addEventListener("abort", abort);
    try {
      // They travel in a header of their own, never in the URL.
      const auth = credentials && { ...credentials, serveraddress: registryOf(fromImage) };
      return await this.#docker.createImage(auth ?? undefined, { fromImage, abortSignal: cancel.signal });
    } catch (error) {
      const failure = runtimeErrorOf(error);
      const kind = failure.kind === "unavailable" && !signals.opening.aborted ? "unavailable" : "pull-failed";
      throw new RuntimeError(kind, failure.message, { cause: error });
    } finally {
      signals.opening.removeEventListener("abort", abort);
    }
  }

  async imagesInUse(): Promise<ReadonlySet<string>> {
    const answer = await within(ASK_MS, (abortSignal) => this.#docker.listContainers({ all: true, abortSignal }));
    return new Set(summariesOf(answer).map((container) => container.imageId));
  }

  async removeImage(reference: string): Promise<void> {
    // Never by force: what a container uses is the engine's last word, whatever was seen before (kubernetes#123631).
    await unless(404, () =>
      within(CHANGE_MS, (abortSignal) => this.#docker.getImage(reference).remove({ abortSignal })),
    );
  }

  async create(plan: ContainerPlan): Promise<string> {
    // Only `_query` goes into the URL: environment values would land in the engine's log otherwise.
    const options = { _query: { name: plan.name }, _body: containerBody(plan) };
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
    // From the container that is made already, since an image cannot be read.
    const archive = await orNull("not-found", () =>
      within(ASK_MS, async (abortSignal) => buffer(await container.getArchive({ path: "/etc/passwd", abortSignal }))),
    );
    const uid = archive && lookUpUser(user, archive);
    if (uid === null) throw new RuntimeError("rejected", `the image runs as "${user}", who is not in its /etc/passwd`);
    return uid;
  }

  async start(id: string): Promise<void> {
    await unless(304, () => within(CHANGE_MS, (abortSignal) => this.#docker.getContainer(id).start({ abortSignal })));
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

  /** Volumes that were made for this owner. @returns the names of those that somebody uses, which stay. */
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
    // The client listens to this signal for as long as the stream lives, so it must not be the caller's own.
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

function ownerFilter(owner: Owner): string[] {
  return [`${LABELS.installation}=${owner.installationId}`, `${LABELS.node}=${owner.nodeId}`];
}

/** One attempt with a limit of its own: a cut answer would otherwise leave its caller waiting for ever. */
async function within<T>(milliseconds: number, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    expired.reject(
      new RuntimeError("unavailable", `the container engine gave no answer within ${milliseconds / 1000} s`),
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

/** 304 and 404 mean that what was asked for has been done already. */
async function unless(status: 304 | 404, change: () => Promise<unknown>): Promise<void> {
  try {
    await change();
  } catch (error) {
    const cause = error instanceof Error ? error.cause : null;
    if (cause instanceof Error && "statusCode" in cause && cause.statusCode === status) return;
    throw error;
  }
}
