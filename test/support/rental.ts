import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Node, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { FakeHetzner, type FakeOptions } from "../fakes/hetzner/src/fake-hetzner.ts";
import type { Faults } from "../fakes/hetzner/src/faults.ts";
import type { Project } from "../fakes/hetzner/src/project.ts";
import type { Call } from "../fakes/hetzner/src/routes.ts";
import { Installation } from "./installation.ts";
import { waitFor } from "./wait-for.ts";

const SOON_MS = 30_000;

const createdNode = z.object({ node: nodeSchema });
const nodePage = z.object({ nodes: z.array(nodeSchema) });
const eventPage = z.object({ events: z.array(nodeEventSchema) });

export interface RentalOptions extends FakeOptions {
  /** That the control plane listens on, and machines reach. */
  readonly address?: string;
  /** Of the control plane, on top of where the fake is. */
  readonly settings?: object;
  /** Of `provisioning`. */
  readonly provisioning?: object;
}

export interface Wish {
  readonly name?: string;
  readonly planId?: string;
  readonly location?: string;
  readonly providerToken?: string | undefined;
}

/** A control plane in a process of its own, and a fake provider that it rents machines from. */
export class Rental {
  readonly installation: Installation;
  readonly fake: FakeHetzner;
  readonly project: Project;
  readonly token: string;

  private constructor(installation: Installation, fake: FakeHetzner) {
    this.installation = installation;
    this.fake = fake;
    this.project = fake.addProject("own");
    this.token = fake.addToken(this.project);
  }

  static async start({ address, settings, provisioning, ...options }: RentalOptions = {}): Promise<Rental> {
    const fake = await FakeHetzner.start(options);
    const rented = { pollSeconds: 0.1, insecure: true, hetzner: { url: fake.url }, ...provisioning };
    try {
      return new Rental(await Installation.start(address, { ...settings, provisioning: rented }), fake);
    } catch (error) {
      await fake.close();
      throw error;
    }
  }

  /** As `POST /v1/nodes` answers. */
  order(wish: Wish = {}): Promise<Response> {
    return this.installation.call("POST", "/v1/nodes", this.wish(wish));
  }

  /** The body of an order. */
  wish(wish: Wish = {}): object {
    return {
      projectId: this.installation.projectId,
      name: "Rented",
      planId: "hetzner:cx22",
      location: "nbg1",
      providerToken: this.token,
      engineConfig: { preset: "fairlead-demo" },
      directSecrets: false,
      ...wish,
    };
  }

  async rent(wish: Wish = {}): Promise<Node> {
    const answer = await this.order(wish);
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return createdNode.parse(await answer.json()).node;
  }

  /** Of the installation's project. */
  async nodes(): Promise<readonly Node[]> {
    const { api, projectId } = this.installation;
    return (await api.find(`/v1/nodes?projectId=${projectId}&pageSize=200`, nodePage))?.nodes ?? [];
  }

  /** Null: gone. */
  node(id: string): Promise<Node | null> {
    return this.installation.api.find(`/v1/nodes/${id}`, nodeSchema);
  }

  async untilStatus(id: string, status: Node["status"], ms = SOON_MS): Promise<Node> {
    let seen: Node | null = null;
    return waitFor(`the node to be ${status}`, ms, async () => {
      seen = await this.node(id);
      return seen?.status === status && seen;
    }).catch(async (error: unknown) => {
      const events = JSON.stringify(await this.events(id), null, 1);
      throw new Error(`${seen?.status}: ${seen?.statusMessage}\n${events}`, { cause: error });
    });
  }

  async delete(id: string): Promise<void> {
    const answer = await this.installation.call("DELETE", `/v1/nodes/${id}`);
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  }

  async untilGone(id: string, ms = SOON_MS): Promise<void> {
    await waitFor("the node to be gone", ms, async () => (await this.node(id)) === null);
  }

  /** Oldest first. */
  async events(id: string): Promise<z.infer<typeof eventPage>["events"]> {
    const page = await this.installation.api.find(`/v1/nodes/${id}/events?pageSize=200`, eventPage);
    return (page?.events ?? []).toReversed();
  }

  /** What the store still remembers of a node's machine. */
  rowsOf(nodeId: string): readonly object[] {
    return this.#inStore((store) => store.prepare("select * from machine where node_id = ?").all(nodeId));
  }

  /** As after all the time that a machine has. */
  passDeadline(nodeId: string): void {
    this.#inStore((store) => store.prepare("update machine set deadline_at = 0 where node_id = ?").run(nodeId));
  }

  /** Strikes once the token of the next order has been found good: the order itself is what it spoils. */
  spoilNextOrder(faults: Partial<Faults>): void {
    const judged = ({ method, path }: Call): boolean => method === "DELETE" && path === "/servers/0";
    this.fake.once(judged, () => void Object.assign(this.fake.faults, faults));
  }

  /** `kill -9` of the control plane as soon as the fake has carried out a call, before it is answered. Once. */
  async killAt(matches: (call: Call) => boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.fake.once(matches, () => this.installation.server.kill().then(resolve, reject));
    });
  }

  #inStore<T>(work: (store: DatabaseSync) => T): T {
    const store = new DatabaseSync(join(this.installation.dir, "data/fairlead.db"));
    try {
      store.exec("pragma busy_timeout = 5000");
      return work(store);
    } finally {
      store.close();
    }
  }

  async remove(): Promise<void> {
    await this.installation.remove();
    await this.fake.close();
  }
}
