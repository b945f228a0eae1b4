import { randomBytes } from "node:crypto";
import { AuditReadService } from "./audit/audit-read-service.ts";
import { type Authenticate, createAuthenticate } from "./auth/authenticate.ts";
import type { Context } from "./context.ts";
import { IdempotencyService } from "./idempotency/idempotency-service.ts";
import { KeyService } from "./keys/key-service.ts";
import { KeyStore } from "./keys/key-store.ts";
import { LinkHub } from "./link/link-hub.ts";
import { LinkServer } from "./link/link-server.ts";
import { createNodeIdentities, createNodeServices, type NodeServices } from "./nodes/node-services.ts";
import { ProjectService } from "./projects/project-service.ts";
import { projectStores } from "./projects/project-stores.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { TunnelHub } from "./tunnel/tunnel-hub.ts";

/** Composition: every service on its stores, and what they tell each other. */

const LINK_RESYNC_MS = 10 * 60_000;

export interface Services {
  readonly authenticate: Authenticate;
  readonly auditLog: AuditReadService;
  readonly idempotency: IdempotencyService;
  readonly projects: ProjectService;
  readonly keys: KeyService;
  readonly nodes: NodeServices;
  readonly hub: LinkHub;
  readonly links: LinkServer;
  readonly tunnels: TunnelHub;
}

export function createServices({ log, ports, installation, addresses }: Context): Services {
  const { db, audit, tokens, users, record } = installation;
  const { publicUrl, modelsUrl } = addresses;
  const identities = createNodeIdentities(db);
  const projects = new ProjectService({ ...ports, audit, stores: projectStores(db) });
  const { access } = projects;
  const secrets = new SecretService({ db, sealer: installation.sealer, clock: ports.clock });
  const nodes = createNodeServices({
    ...ports,
    db,
    access,
    audit,
    issuer: tokens,
    secrets,
    log,
    installation: record,
    publicUrl,
  });
  const { reports, liveness, changes } = nodes;
  const hub = new LinkHub({ reports, liveness, changes, clock: ports.clock, log, resyncMs: LINK_RESYNC_MS });
  const links = new LinkServer({ links: hub, log });
  const tunnels = new TunnelHub({ log });
  changes.listen(({ aspect, nodeId }) => {
    // A deleted node's credential is void at once, and so is what it has open.
    if (aspect !== "removed") return;
    links.disconnect(nodeId);
    tunnels.disconnect(nodeId);
    liveness.forget(nodeId);
  });
  return {
    authenticate: createAuthenticate({ tokens, sessions: users, nodes: identities, modelsUrl }),
    auditLog: new AuditReadService({ longReads: installation.longReads, access }),
    idempotency: new IdempotencyService({ db, clock: ports.clock }),
    projects,
    keys: new KeyService({ ...ports, keys: new KeyStore(db), access, randomBytes, publicUrl }),
    nodes,
    hub,
    links,
    tunnels,
  };
}
