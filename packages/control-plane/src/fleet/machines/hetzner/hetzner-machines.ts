import type { Clock } from "@fairlead/protocol/values/clock";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { OutgoingFetch } from "../../../installation/outgoing/outgoing-fetch.ts";
import {
  type Machine,
  type MachinePlan,
  type MachineProvider,
  type MachineRequest,
  ProviderRefusal,
} from "../machine-provider.ts";
import {
  actionAnswer,
  actionsPage,
  createdAnswer,
  failureOf,
  HETZNER_LABELS,
  machineOf,
  planOf,
  pricingAnswer,
  serverAnswer,
  serversPage,
  serverTypesPage,
} from "./hetzner-answers.ts";
import { HetznerApi } from "./hetzner-api.ts";

export interface HetznerMachinesParts {
  readonly url: string;
  readonly image: string;
  readonly installationId: string;
  readonly clock: Clock;
  readonly fetch?: OutgoingFetch;
}

const PER_PAGE = 50;
/** No server has this ID, so deleting it only tests the token's permissions. */
const NO_SERVER = "/servers/0";
const anything = z.unknown();
/** For compatible APIs without `/pricing`: server type prices have no currency. */
const USUAL_CURRENCY = "EUR";

/** Hetzner Cloud servers. Names are unique per Hetzner project, which prevents a repeated create. */
export class HetznerMachines implements MachineProvider {
  readonly name = "hetzner";
  readonly needsToken = true;
  readonly maxUserDataBytes = 32 * 1024;
  readonly #parts: HetznerMachinesParts;
  readonly #api: HetznerApi;
  /** By server, because a server that disappears takes its list of actions, and so the reason, with it. */
  readonly #createActions = new LRUCache<string, number>({ max: 1000 });

  constructor(parts: HetznerMachinesParts) {
    this.#parts = parts;
    this.#api = new HetznerApi(parts);
  }

  async checkToken(token: string): Promise<void> {
    await this.#api.call(token, { method: "GET", path: "/servers?per_page=1" }, serversPage);
    try {
      await this.#api.call(token, { method: "DELETE", path: NO_SERVER }, anything);
    } catch (error) {
      // The token was accepted; nothing else is checked here.
      if (error instanceof ProviderRefusal && error.kind === "bad_input") return;
      throw error;
    }
  }

  async plans(token: string | null): Promise<readonly MachinePlan[]> {
    if (token === null) return [];
    const types = (await this.#pages(token, "/server_types?", serverTypesPage)).flatMap((page) => page.server_types);
    const priced = await this.#api.find(token, { method: "GET", path: "/pricing" }, pricingAnswer);
    const currency = priced?.pricing.currency ?? USUAL_CURRENCY;
    const market = { currency, now: this.#parts.clock.now() };
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
      labels: { [HETZNER_LABELS.installation]: installationId, [HETZNER_LABELS.request]: label },
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
    const ours = `${HETZNER_LABELS.installation}==${this.#parts.installationId}`;
    const selector = label === null ? ours : `${ours},${HETZNER_LABELS.request}==${label}`;
    const pages = await this.#pages(token, `/servers?label_selector=${encodeURIComponent(selector)}&`, serversPage);
    return pages.flatMap(({ servers }) => servers).map((server) => machineOf(server));
  }

  /** Other servers in the same project are ignored. */
  #isOurs({ labels }: Pick<z.infer<typeof serverAnswer>["server"], "labels">): boolean {
    return labels[HETZNER_LABELS.installation] === this.#parts.installationId;
  }

  /** Null, unless the provider still knows why an accepted machine does not exist. */
  async #vanished(token: string, machineId: string): Promise<Machine | null> {
    const actionId = this.#createActions.get(machineId);
    if (actionId === undefined) return null;
    const found = await this.#api.find(token, { method: "GET", path: `/actions/${actionId}` }, actionAnswer);
    const failure = found === null ? null : failureOf([found.action]);
    if (failure === null) return null;
    return { id: machineId, label: "", state: "gone", ip: null, location: "", createdAt: 0, failure };
  }

  /** @param path including a query. */
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
