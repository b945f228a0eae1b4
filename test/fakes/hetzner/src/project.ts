import { z } from "zod";
import { Action } from "./action.ts";
import { ApiError, invalidInput, noCapacity, notFound } from "./api-error.ts";
import { IMAGES, type Image, LOCATIONS, type Location, SERVER_TYPES, type ServerType } from "./catalog.ts";
import { type Faults, isShort, strikes } from "./faults.ts";
import { checkLabels } from "./label-selector.ts";
import type { MachineStarter } from "./machine-starter.ts";
import { Server } from "./server.ts";

const MAX_USER_DATA_BYTES = 32 * 1024;
const HOSTNAME = /^(?=.{1,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i;

const idOrName = z.union([z.string(), z.number()]).transform(String);

/** What of `create_server_request` the fake acts on; the rest is accepted, as the API does. */
export const serverRequestSchema = z.object({
  name: z.string(),
  server_type: idOrName,
  image: idOrName,
  location: idOrName.optional(),
  labels: z.record(z.string(), z.string()).default({}),
  ssh_keys: z.array(idOrName).default([]),
  user_data: z.string().default(""),
});

type ServerRequest = z.infer<typeof serverRequestSchema>;

export interface ProjectParts {
  readonly name: string;
  readonly faults: Faults;
  readonly starter: MachineStarter;
  /** Servers that a project may have. */
  readonly serverLimit: number;
  readonly nextId: () => number;
  /** ISO 8601. */
  readonly now: () => string;
}

/** What a token sees. */
export class Project {
  readonly #parts: ProjectParts;
  readonly #servers = new Map<number, Server>();
  readonly #actions = new Map<number, Action>();
  readonly #work = new Set<Promise<void>>();

  constructor(parts: ProjectParts) {
    this.#parts = parts;
  }

  get name(): string {
    return this.#parts.name;
  }

  /** Those that cost money, oldest first. */
  get servers(): readonly Server[] {
    return [...this.#servers.values()].filter(({ gone }) => !gone);
  }

  /** @throws ApiError as `POST /servers` answers */
  create(request: ServerRequest): object {
    const { faults, now, nextId } = this.#parts;
    const { type, location, image } = this.#check(request);
    const id = nextId();
    const createAction = this.#begin("create_server", id);
    const failsLater = faults.failLater.times > 0;
    if (failsLater) faults.failLater.times -= 1;
    const { name, labels, user_data: userData } = request;
    const parts = { id, name, labels, userData, type, location, image, created: now(), createAction };
    const server = new Server(parts, faults, { failsLater, now });
    this.#servers.set(id, server);
    if (!failsLater) this.#inBackground(this.#boot(server));
    const startAction = this.#begin("start_server", id);
    startAction.end(now());
    const rootPassword = request.ssh_keys.length === 0 ? "fake-root-password" : null;
    return { server, action: createAction, next_actions: [startAction], root_password: rootPassword };
  }

  /** What a list shows now. */
  list(): readonly Server[] {
    const seen = this.servers.filter((server) => server.seenByList());
    for (const server of seen) server.look();
    return seen.filter(({ gone }) => !gone);
  }

  /** @throws ApiError 404 */
  server(id: number): Server {
    const server = this.#find(id);
    server.look();
    if (server.gone) throw notFound("server", id);
    return server;
  }

  /** Done already on one that is about to go. @throws ApiError 404, 423 */
  delete(id: number): Action {
    const { faults, starter } = this.#parts;
    const server = this.#find(id);
    if (strikes(faults, "locked")) throw new ApiError(423, "locked", { message: "server is locked" });
    const action = this.#begin("delete_server", id);
    if (server.deleting) return action;
    server.delete(action);
    this.#inBackground(starter.remove(id).then(() => server.removed()));
    return action;
  }

  actionsOf(serverId: number): readonly Action[] {
    this.server(serverId);
    return [...this.#actions.values()].filter((action) => action.serverId === serverId);
  }

  /** @throws ApiError 404 */
  action(id: number): Action {
    const action = this.#actions.get(id);
    if (action === undefined) throw notFound("action", id);
    this.#servers.get(action.serverId)?.look();
    return action;
  }

  /** Ends when nothing boots or is removed any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#work);
  }

  #find(id: number): Server {
    const server = this.#servers.get(id);
    if (server === undefined || server.gone) throw notFound("server", id);
    return server;
  }

  #check(request: ServerRequest): { type: ServerType; location: Location; image: Image } {
    const { faults, serverLimit } = this.#parts;
    if (!HOSTNAME.test(request.name)) throw invalidInput("name", "name must be a valid hostname");
    checkLabels(request.labels);
    if (Buffer.byteLength(request.user_data) > MAX_USER_DATA_BYTES) {
      throw invalidInput("user_data", "user data is limited to 32 KiB");
    }
    const type = chosen(SERVER_TYPES, request.server_type);
    if (type === undefined) throw invalidInput("server_type", "server type not found");
    if (type.deprecated) throw invalidInput("server_type", `server type ${type.id} is deprecated`);
    const location = chosen(LOCATIONS, request.location ?? "fsn1");
    if (location === undefined) throw invalidInput("location", "location not found");
    if (!type.locations.some(({ id }) => id === location.id)) {
      throw invalidInput("location", "unsupported location for server type");
    }
    const fitting = IMAGES.filter(({ architecture }) => architecture === type.architecture);
    const image = chosen(fitting, request.image);
    if (image === undefined) throw invalidInput("image", "image not found");
    if (this.servers.some(({ parts }) => parts.name === request.name)) {
      throw new ApiError(409, "uniqueness_error", {
        message: "server name is already used",
        details: { fields: [{ name: "name" }] },
      });
    }
    if (this.servers.length >= serverLimit) {
      throw new ApiError(403, "resource_limit_exceeded", {
        message: "server limit reached",
        details: { limits: [{ name: "server_limit" }] },
      });
    }
    if (isShort([...faults.noCapacity, ...faults.soldOut], type.name, location.name)) throw noCapacity();
    return { type, location, image };
  }

  async #boot(server: Server): Promise<void> {
    const { id, name, userData } = server.parts;
    try {
      server.booted(await this.#parts.starter.start({ id, name, userData }));
    } catch (error) {
      server.bootFailed(error instanceof Error ? error.message : String(error));
    }
  }

  #begin(command: string, serverId: number): Action {
    const action = new Action(this.#parts.nextId(), { command, serverId, at: this.#parts.now() });
    this.#actions.set(action.id, action);
    return action;
  }

  #inBackground(work: Promise<void>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }
}

function chosen<T extends { readonly id: number; readonly name: string }>(
  all: readonly T[],
  idOrName: string,
): T | undefined {
  return all.find(({ id, name }) => name === idOrName || String(id) === idOrName);
}
