import { randomBytes } from "node:crypto";
import { AgentChanges } from "./agents/agent-changes.ts";
import { AgentLimitsService } from "./agents/agent-limits-service.ts";
import { AgentStandings } from "./agents/agent-standing.ts";
import { AgentStore } from "./agents/agent-store.ts";
import { AnswerService } from "./answers/answer-service.ts";
import { AnswerStore } from "./answers/answer-store.ts";
import { AuditReadService } from "./audit/audit-read-service.ts";
import { type BillingServices, createBillingServices } from "./billing/billing-services.ts";
import { type ChatServices, createChatServices } from "./chat/chat-services.ts";
import type { Context } from "./context.ts";
import { type Credentials, createCredentials } from "./credentials.ts";
import { createFleet, type Fleet } from "./fleet.ts";
import { IdempotencyService } from "./idempotency/idempotency-service.ts";
import { KeyService } from "./keys/key-service.ts";
import { KeyStore } from "./keys/key-store.ts";
import { KeyUse } from "./keys/key-use.ts";
import { type CallLimiter, callLimiter } from "./limits/call-limiter.ts";
import { serverLimits } from "./limits/call-limits.ts";
import { LimitService } from "./limits/limit-service.ts";
import { LimitStore } from "./limits/limit-store.ts";
import { Limiter } from "./limits/limiter.ts";
import { InvitationService } from "./members/invitation-service.ts";
import { MemberService } from "./members/member-service.ts";
import { MembershipService } from "./members/membership-service.ts";
import { createNodeIdentities } from "./nodes/node-services.ts";
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
import { AgentConnectService } from "./relay/agent-connect-service.ts";
import { WorkloadConnectService } from "./relay/workload-connect-service.ts";
import { createSignInServices, type SignInServices } from "./sign-in/sign-in-services.ts";
import { createUsageServices, type UsageServices } from "./usage/usage-services.ts";
import type { SessionService } from "./users/session-service.ts";
import type { UserService } from "./users/user-service.ts";

/** Composition: every service on its stores, and what they tell each other. */

export interface Services
  extends SignInServices,
    Credentials,
    BillingServices,
    UsageServices,
    ProviderServices,
    ChatServices,
    Fleet {
  readonly answers: AnswerService;
  readonly auditLog: AuditReadService;
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
  readonly agentLimits: AgentLimitsService;
  readonly workloadConnect: WorkloadConnectService;
  readonly agentConnect: AgentConnectService;
}

export function createServices(context: Context): Services {
  const { config, log, ports, installation, addresses } = context;
  const { db, writes, audit, users, oneTimeLinks } = installation;
  const { publicUrl } = addresses;
  const identities = createNodeIdentities(db);
  const memberships = new MembershipService({ db });
  const stores = projectStores(db);
  const projects = new ProjectService({ ...ports, audit, stores, memberships });
  const { access } = projects;
  const names = new ProjectNames(config.providers.platform.map(({ name }) => name));
  const agentChanges = new AgentChanges();
  const agentStandings = new AgentStandings(new AgentStore(db));
  const fleet = createFleet(context, { access, names, agentChanges, agentStandings });
  const { nodes, tunnels } = fleet;
  const signInServices = createSignIn(context);
  const keyUse = new KeyUse({ keys: new KeyStore(writes), clock: ports.clock, log });
  const keys = new KeyService({ ...ports, keys: new KeyStore(db), use: keyUse, access, audit, randomBytes });
  const chat = createChatServices({ ...ports, ...installation, access });
  const changes = nodes.changes;
  const facts = { identities, memberships, agentStandings, agentChanges };
  const credentials = createCredentials({ ...ports, ...installation, ...facts, changes, addresses });
  const billing = createBillingServices({ ...ports, ...installation, mode: config.billing.mode, projects, log });
  const removals = { agents: fleet.agentRemoval, nodes: nodes.removal, chats: chat.chatRemoval };
  return {
    ...signInServices,
    users,
    sessions: installation.sessions,
    entry: new LinkEntryService({ ...installation, ...signInServices, links: oneTimeLinks }),
    ...credentials,
    answers: createAnswers(context),
    ...chat,
    ...fleet,
    auditLog: new AuditReadService({ longReads: installation.longReads, access }),
    ...billing,
    agentLimits: new AgentLimitsService({ ...fleet, ...billing, db, changes: agentChanges, access, audit }),
    ...createUsageServices({ ...ports, ...installation, access, log }),
    ...createLimits(context, projects),
    ...createProviders(context, { projects, names, tunnels, engines: nodes.engines }),
    idempotency: new IdempotencyService({ db, clock: ports.clock }),
    projects,
    projectRemoval: new ProjectRemovalService({ ...ports, stores, access, keys, audit, ...removals }),
    members: new MemberService({ db, access, keys, links: oneTimeLinks, audit }),
    invitations: new InvitationService({ ...ports, db, access, links: oneTimeLinks, audit, publicUrl }),
    keys,
    keyUse,
    workloadConnect: new WorkloadConnectService({ ...nodes, ...credentials, db, access, audit, publicUrl }),
    agentConnect: new AgentConnectService({ ...fleet, ...credentials, db, access, audit, publicUrl }),
  };
}

function createSignIn({ config, log, ports, installation, addresses }: Context): SignInServices {
  const { publicUrl } = addresses;
  return createSignInServices({ ...ports, ...installation, randomBytes, log, publicUrl, settings: config.signIn });
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
