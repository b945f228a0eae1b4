import type { Clock } from "@fairlead/protocol/clock";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import {
  actionAnswer,
  actionsPage,
  createdAnswer,
  datacentersPage,
  failureOf,
  LABELS,
  machineOf,
  planOf,
  pricingAnswer,
  serverAnswer,
  serversPage,
  serverTypesPage,
} from "./hetzner-answers.ts";
import { HetznerApi } from "./hetzner-api.ts";
import {
  type Machine,
  type MachinePlan,
  type MachineProvider,
  type MachineRequest,
  ProviderRefusal,
} from "./machine-provider.ts";

export interface HetznerMachinesParts {
  readonly url: string;
  readonly image: string;
  readonly installationId: string;
  readonly clock: Clock;
}

const PER_PAGE = 50;
/** No server has it, so that asking for its end tells what a token may, and nothing else. */
const NO_SERVER = "/servers/0";
const anything = z.unknown();
/** Where an API of this kind has no `/pricing`: prices beside server types name no currency. */
const USUAL_CURRENCY = "EUR";

/** Servers of the Hetzner Cloud. Names are unique in one of its projects, which keeps a create from happening twice. */
export class HetznerMachines implements MachineProvider {
  readonly name = "hetzner";
  readonly needsToken = true;
  readonly maxUserDataBytes = 32 * 1024;
  readonly #parts: HetznerMachinesParts;
  readonly #api: HetznerApi;
  /** By server: a server that vanishes takes its own list of actions along, and with it the reason. */
  readonly #createActions = new LRUCache<string, number>({ max: 1000 });

  constructor(parts: HetznerMachinesParts) {
    this.#parts = parts;
    this.#api = new HetznerApi(parts.url, parts.clock);
  }

  async checkToken(token: string): Promise<void> {
    await this.#api.call(token, { method: "GET", path: "/servers?per_page=1" }, serversPage);
    try {
      await this.#api.call(token, { method: "DELETE", path: NO_SERVER }, anything);
    } catch (error) {
      // Past the judgement of the token, which alone was asked for.
      if (error instanceof ProviderRefusal && error.kind === "bad_input") return;
      throw error;
    }
  }

  async plans(token: string | null): Promise<readonly MachinePlan[]> {
    if (token === null) return [];
    const types = (await this.#pages(token, "/server_types?", serverTypesPage)).flatMap((page) => page.server_types);
    const datacenters = (await this.#pages(token, "/datacenters?", datacentersPage)).flatMap(
      (page) => page.datacenters,
    );
    const priced = await this.#api.find(token, { method: "GET", path: "/pricing" }, pricingAnswer);
    const currency = priced?.pricing.currency ?? USUAL_CURRENCY;
    const market = { datacenters, currency, now: this.#parts.clock.now() };
    return types.flatMap((type) => planOf(type, market) ?? []);
  }

  async create(token: string, request: MachineRequest): Promise<Machine> {
    const { label, name, type, location, userData } = request;
    const { image, installationId } = this.#parts;
    const body = {
      name,
      server_type: type,
      location,
      image,
      user_data: userData,
      labels: { [LABELS.installation]: installationId, [LABELS.request]: label },
      public_net: { enable_ipv4: true, enable_ipv6: true },
      start_after_create: true,
    };
    const { server, action } = await this.#api.call(token, { method: "POST", path: "/servers", body }, createdAnswer);
    this.#createActions.set(String(server.id), action.id);
    return machineOf(server, failureOf([action]));
  }

  async get(token: string, machineId: string): Promise<Machine | null> {
    const path = `/servers/${encodeURIComponent(machineId)}`;
    const found = await this.#api.find(token, { method: "GET", path }, serverAnswer);
    if (found === null) return this.#vanished(token, machineId);
    const { server } = found;
    if (!this.#isOurs(server)) return null;
    const machine = machineOf(server);
    if (machine.state !== "pending") return machine;
    const pages = await this.#pages(token, `${path}/actions?`, actionsPage);
    return machineOf(server, failureOf(pages.flatMap(({ actions }) => actions)));
  }

  async delete(token: string, machineId: string): Promise<void> {
    const path = `/servers/${encodeURIComponent(machineId)}`;
    const found = await this.#api.find(token, { method: "GET", path }, serverAnswer);
    if (found === null || !this.#isOurs(found.server)) return;
    await this.#api.find(token, { method: "DELETE", path }, anything);
  }

  async findByLabel(token: string, label: string | null): Promise<readonly Machine[]> {
    const ours = `${LABELS.installation}==${this.#parts.installationId}`;
    const selector = label === null ? ours : `${ours},${LABELS.request}==${label}`;
    const pages = await this.#pages(token, `/servers?label_selector=${encodeURIComponent(selector)}&`, serversPage);
    return pages.flatMap(({ servers }) => servers).map((server) => machineOf(server));
  }

  /** A stranger's server is none of our machines. */
  #isOurs({ labels }: Pick<z.infer<typeof serverAnswer>["server"], "labels">): boolean {
    return labels[LABELS.installation] === this.#parts.installationId;
  }

  /** Null, unless the provider still knows why the machine that it had accepted is not there. */
  async #vanished(token: string, machineId: string): Promise<Machine | null> {
    const actionId = this.#createActions.get(machineId);
    if (actionId === undefined) return null;
    const found = await this.#api.find(token, { method: "GET", path: `/actions/${actionId}` }, actionAnswer);
    const failure = found === null ? null : failureOf([found.action]);
    if (failure === null) return null;
    return { id: machineId, label: "", state: "gone", ip: null, location: "", createdAt: 0, failure };
  }

  /** @param path with its query begun. */
  async #pages<T extends { readonly meta: { readonly pagination: { readonly next_page: number | null } } }>(
    token: string,
    path: string,
    schema: z.ZodType<T>,
  ): Promise<readonly T[]> {
    const pages: T[] = [];
    for (let page: number | null = 1; page !== null; ) {
      const answer: T = await this.#api.call(
        token,
        { method: "GET", path: `${path}page=${page}&per_page=${PER_PAGE}` },
        schema,
      );
      pages.push(answer);
      page = answer.meta.pagination.next_page;
    }
    return pages;
  }
}
