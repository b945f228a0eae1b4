import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { BUILD } from "@fairlead/protocol/build-info";
import { AnswerService } from "./answers/answer-service.ts";
import { AnswerStore } from "./answers/answer-store.ts";
import { AuditReadService } from "./audit/audit-read-service.ts";
import { type BillingServices, createBillingServices } from "./billing/billing-services.ts";
import { DaemonBuildService } from "./builds/daemon-build-service.ts";
import { programFolder } from "./builds/program-folder.ts";
import { type ChatServices, createChatServices } from "./chat/chat-services.ts";
import type { Context } from "./context.ts";
import { type Credentials, createCredentials } from "./credentials.ts";
import { IdempotencyService } from "./idempotency/idempotency-service.ts";
import { KeyService } from "./keys/key-service.ts";
import { KeyStore } from "./keys/key-store.ts";
import { KeyUse } from "./keys/key-use.ts";
import { type CallLimiter, callLimiter } from "./limits/call-limiter.ts";
import { serverLimits } from "./limits/call-limits.ts";
import { LimitService } from "./limits/limit-service.ts";
import { LimitStore } from "./limits/limit-store.ts";
import { Limiter } from "./limits/limiter.ts";
import { LinkHub } from "./link/link-hub.ts";
import { LinkServer } from "./link/link-server.ts";
import {
  createMachineOrders,
  createMachineServices,
  type MachineOrders,
  type MachineOrdersDeps,
  type MachineServices,
  machineProviders,
} from "./machines/machine-services.ts";
import { provisioningOptions } from "./machines/provisioning-settings.ts";
import { InvitationService } from "./members/invitation-service.ts";
import { MemberService } from "./members/member-service.ts";
import { MembershipService } from "./members/membership-service.ts";
import { livenessOptions } from "./nodes/fleet-settings.ts";
import { NodeLogService } from "./nodes/node-log-service.ts";
import { createNodeIdentities, createNodeServices, type NodeServices } from "./nodes/node-services.ts";
import { LinkEntryService } from "./pages/link-entry-service.ts";
import { ProjectRemovalService } from "./projects/project-removal-service.ts";
import { ProjectService } from "./projects/project-service.ts";
import { projectStores } from "./projects/project-stores.ts";
import { PlatformProviders } from "./providers/platform-providers.ts";
import { ProjectNames } from "./providers/project-names.ts";
import {
  createProviderServices,
  type ProviderServices,
  type ProviderServicesDeps,
} from "./providers/provider-services.ts";
import { WorkloadConnectService } from "./relay/workload-connect-service.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { createSignInServices, type SignInServices } from "./sign-in/sign-in-services.ts";
import { TunnelHub } from "./tunnel/tunnel-hub.ts";
import { createUsageServices, type UsageServices } from "./usage/usage-services.ts";
import type { SessionService } from "./users/session-service.ts";
import type { UserService } from "./users/user-service.ts";

/** Composition: every service on its stores, and what they tell each other. */

const LINK_RESYNC_MS = 10 * 60_000;

export interface Services
  extends SignInServices,
    Credentials,
    BillingServices,
    UsageServices,
    ProviderServices,
    ChatServices {
  readonly answers: AnswerService;
  readonly auditLog: AuditReadService;
  readonly daemonBuilds: DaemonBuildService;
  readonly idempotency: IdempotencyService;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly entry: LinkEntryService;
  readonly projects: ProjectService;
  readonly projectRemoval: ProjectRemovalService;
  readonly members: MemberService;
  readonly invitations: InvitationService;
  readonly keys: KeyService;
  readonly keyUse: KeyUse;
  readonly projectLimits: LimitService;
  readonly limiter: Limiter;
  readonly callLimiter: CallLimiter;
  readonly nodes: NodeServices;
  readonly machines: MachineOrders & MachineServices;
  readonly hub: LinkHub;
  readonly links: LinkServer;
  readonly tunnels: TunnelHub;
  readonly nodeLogs: NodeLogService;
  readonly workloadConnect: WorkloadConnectService;
}

export function createServices(context: Context): Services {
  const { config, log, ports, installation, addresses } = context;
  const { db, writes, audit, tokens, users, record } = installation;
  const { publicUrl } = addresses;
  const identities = createNodeIdentities(db);
  const memberships = new MembershipService({ db });
  const stores = projectStores(db);
  const projects = new ProjectService({ ...ports, audit, stores, memberships });
  const { access } = projects;
  const secrets = new SecretService({ db, sealer: installation.sealer, clock: ports.clock });
  const tunnels = new TunnelHub({ log });
  const names = new ProjectNames(config.providers.platform.map(({ name }) => name));
  const daemonBuilds = createDaemonBuilds(context);
  const renting = createRenting(context);
  const nodes = createNodeServices({
    ...ports,
    db,
    machines: renting.orders,
    writeTogether: installation.writeTogether,
    names,
    access,
    audit,
    issuer: tokens,
    secrets,
    calls: tunnels,
    people: users,
    log,
    installation: record,
    publicUrl,
    builds: daemonBuilds,
    liveness: livenessOptions(config.fleet),
  });
  const signInServices = createSignInServices({
    ...ports,
    ...installation,
    randomBytes,
    log,
    publicUrl,
    settings: config.signIn,
  });
  const keyUse = new KeyUse({ keys: new KeyStore(writes), clock: ports.clock, log });
  const keys = new KeyService({ ...ports, keys: new KeyStore(db), use: keyUse, access, audit, randomBytes });
  const chat = createChatServices({ ...ports, ...installation, access });
  const { oneTimeLinks } = installation;
  const credentials = createCredentials({
    ...ports,
    ...installation,
    identities,
    memberships,
    changes: nodes.changes,
    addresses,
  });
  return {
    ...signInServices,
    users,
    sessions: installation.sessions,
    entry: new LinkEntryService({ ...installation, ...signInServices, links: oneTimeLinks }),
    ...credentials,
    answers: createAnswers(context),
    ...chat,
    daemonBuilds,
    auditLog: new AuditReadService({ longReads: installation.longReads, access }),
    ...createBillingServices({ ...ports, ...installation, mode: config.billing.mode, projects, log }),
    ...createUsageServices({ ...ports, ...installation, access, log }),
    ...createLimits(context, projects),
    ...createProviders(context, { projects, names, tunnels, engines: nodes.engines }),
    idempotency: new IdempotencyService({ db, clock: ports.clock }),
    projects,
    projectRemoval: new ProjectRemovalService({
      ...ports,
      stores,
      access,
      keys,
      nodes: nodes.removal,
      chats: chat.chatRemoval,
      audit,
    }),
    members: new MemberService({ db, access, keys, links: oneTimeLinks, audit }),
    invitations: new InvitationService({ ...ports, db, access, links: oneTimeLinks, audit, publicUrl }),
    keys,
    keyUse,
    nodes,
    machines: { ...renting, ...createMachineServices({ ...renting, nodes: nodes.nodeMachines, access, audit, log }) },
    ...createLinks(context, nodes, tunnels),
    tunnels,
    nodeLogs: new NodeLogService({ ...nodes, db, access, audit, sessions: users, daemons: tunnels }),
    workloadConnect: new WorkloadConnectService({
      ...nodes,
      db,
      access,
      audit,
      tokens: credentials.connectTokens,
      publicUrl,
    }),
  };
}

function createLinks(
  { log, ports }: Context,
  nodes: NodeServices,
  tunnels: TunnelHub,
): Pick<Services, "hub" | "links"> {
  const { reports, liveness, nodeSecrets: secrets, changes } = nodes;
  const hub = new LinkHub({ reports, liveness, secrets, changes, clock: ports.clock, log, resyncMs: LINK_RESYNC_MS });
  const links = new LinkServer({ links: hub, log });
  cutRemovedNodes(nodes, { links, tunnels });
  return { hub, links };
}

function createRenting({ config, ports, installation, addresses }: Context): MachineOrders & MachineOrdersDeps {
  const { db, sealer, record } = installation;
  const parts = { installationId: record.id, clock: ports.clock };
  const providers = machineProviders(config.provisioning, parts);
  const options = provisioningOptions(config.provisioning);
  const deps = { db, providers, sealer, clock: ports.clock, publicUrl: addresses.publicUrl, options };
  return { ...deps, ...createMachineOrders(deps) };
}

function createDaemonBuilds({ config, log }: Context): DaemonBuildService {
  const folders = [config.builds.dir, join(programFolder(), "daemon-builds")];
  return new DaemonBuildService({ folders, serverVersion: BUILD.version, log });
}

function createAnswers({ ports, installation }: Context): AnswerService {
  const { db, writes, sealer } = installation;
  return new AnswerService({ ...ports, answers: new AnswerStore(db), writes: new AnswerStore(writes), sealer });
}

function createLimits(
  { config, ports, installation }: Context,
  projects: ProjectService,
): Pick<Services, "projectLimits" | "limiter" | "callLimiter"> {
  const { db, audit } = installation;
  const { access } = projects;
  const server = serverLimits(config.limits.project);
  const projectLimits = new LimitService({ ...ports, limits: new LimitStore(db), server, access, audit, projects });
  const limiter = new Limiter(ports.clock);
  return { projectLimits, limiter, callLimiter: callLimiter(limiter, projectLimits) };
}

function createProviders(
  { config, log, ports, installation }: Context,
  { projects, ...parts }: Pick<ProviderServicesDeps, "names" | "tunnels" | "engines"> & Pick<Services, "projects">,
): ProviderServices {
  const { providers: settings, inference } = config;
  return createProviderServices({
    ...ports,
    ...installation,
    ...parts,
    settings,
    defaultModel: inference.defaultModel ?? null,
    platform: new PlatformProviders(settings.platform, ports.clock.now()),
    changes: projects.modelChanges,
    access: projects.access,
    projects,
    log,
  });
}

/** A deleted node's credential is void at once, and so is what it has open. */
function cutRemovedNodes(
  { changes, liveness }: NodeServices,
  { links, tunnels }: Pick<Services, "links" | "tunnels">,
): void {
  changes.listen(({ aspect, nodeId }) => {
    if (aspect !== "removed") return;
    links.disconnect(nodeId);
    tunnels.disconnect(nodeId);
    liveness.forget(nodeId);
  });
}
