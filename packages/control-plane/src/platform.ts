import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { registerAgentLifeRoutes } from "./agents/agent-life-routes.ts";
import { registerAgentLimitsRoutes } from "./agents/agent-limits-routes.ts";
import { registerAgentLogRoutes } from "./agents/agent-log-routes.ts";
import { registerAgentRoutes } from "./agents/agent-routes.ts";
import { registerAgentSecretRoutes } from "./agents/agent-secret-routes.ts";
import { agentStores } from "./agents/agent-stores.ts";
import { registerConnectorRoutes } from "./agents/connector-routes.ts";
import { registerAuditRoutes } from "./audit/audit-routes.ts";
import { registerBillingRoutes } from "./billing/billing-routes.ts";
import { registerDaemonBuildRoutes } from "./builds/daemon-build-routes.ts";
import { registerInstallRoutes } from "./builds/install-routes.ts";
import { programFolder } from "./builds/program-folder.ts";
import { registerChatRoutes } from "./chat/chat-routes.ts";
import type { ChatTurns } from "./chat-turns.ts";
import type { Context } from "./context.ts";
import { CallsInFlight } from "./http/calls-in-flight.ts";
import { divertRequests } from "./http/divert-requests.ts";
import { listen } from "./http/listen.ts";
import { createPlatformHost, type PlatformApp } from "./http/platform-host.ts";
import { createRateLimits, type RateLimits } from "./http/rate-limits.ts";
import { RequestTally } from "./http/request-tally.ts";
import { UpgradeAdmission } from "./http/upgrade-admission.ts";
import { UpgradeDispatcher } from "./http/upgrade-dispatcher.ts";
import { type InferenceHost } from "./inference/inference-host.ts";
import { inferencePaths } from "./inference/inference-paths.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import { registerLimitRoutes } from "./limits/limit-routes.ts";
import { daemonUpgrades } from "./link/daemon-upgrades.ts";
import { registerMachineRoutes } from "./machines/machine-routes.ts";
import { registerInvitationRoutes } from "./members/invitation-routes.ts";
import { registerMemberRoutes } from "./members/member-routes.ts";
import { createMetrics, type MetricSources } from "./metrics/metrics.ts";
import { registerMetricsRoutes } from "./metrics/metrics-routes.ts";
import { registerDesiredDaemonRoutes } from "./nodes/desired-daemon-routes.ts";
import { registerNodeDaemonRoutes } from "./nodes/node-daemon-routes.ts";
import { registerNodeLifeRoutes } from "./nodes/node-life-routes.ts";
import { registerNodeLogRoutes } from "./nodes/node-log-routes.ts";
import { registerNodeObservedRoutes } from "./nodes/node-observed-routes.ts";
import { registerNodeRoutes } from "./nodes/node-routes.ts";
import { registerNodeSecretRoutes } from "./nodes/node-secret-routes.ts";
import { nodeStores } from "./nodes/node-stores.ts";
import { registerPages } from "./pages/page-routes.ts";
import { registerPlanRoutes } from "./plans/plan-routes.ts";
import { registerProjectRoutes } from "./projects/project-routes.ts";
import { registerAliasRoutes } from "./providers/alias-routes.ts";
import { registerProviderRoutes } from "./providers/provider-routes.ts";
import { registerAgentConnectRoutes } from "./relay/agent-connect-routes.ts";
import { Relay } from "./relay/relay.ts";
import { registerWorkloadConnectRoutes } from "./relay/workload-connect-routes.ts";
import type { Services } from "./services.ts";
import { registerOAuthRoutes } from "./sign-in/oauth-routes.ts";
import { registerUsageRoutes } from "./usage/usage-routes.ts";
import { registerMeRoutes } from "./users/me-routes.ts";

/** Composition: the platform host, its routes, links and tunnels, as one thing that starts and stops. */

export interface Platform {
  listen(): Promise<void>;
  /** Lets nothing new in; what runs goes on. */
  stop(): void;
  /** Ends links, tunnels, and at the deadline what still runs. */
  cut(): Promise<void>;
}

/** How long a body of the platform host's own routes may take; they are small. */
const PLATFORM_BODY_MS = 30_000;

/** Daemons that wait for the answer to their hello at once: far fewer than can be answered before they give up. */
const MAX_GREETING = 200;

export function createPlatform(context: Context, services: PlatformServices, inference: InferenceHost): Platform {
  const { log, ports, installation, addresses, deadline } = context;
  const { authenticate, links, tunnels } = services;
  const requests = new RequestTally();
  const limits = createRateLimits(context.config.rateLimits);
  const admissions = createAdmissions(context, services);
  const metrics = createPlatformMetrics(context, services, { platformRequests: requests, inference, admissions });
  let closed: Promise<void> | null = null;
  const app = createPlatformHost({
    ids: ports.ids,
    log,
    authenticate,
    requests,
    trustedProxies: context.config.server.trustedProxies,
    routes: (routes) => {
      registerRoutes(routes, { ...services, limits, clock: ports.clock, publicUrl: addresses.publicUrl });
      registerChat(routes, { context, services, inference });
      registerMetricsRoutes(routes, metrics);
    },
    document: { publicUrl: addresses.publicUrl, inferencePaths: inferencePaths(addresses.modelsUrl) },
    health: {
      publicJwks: () => installation.keyRing.publicJwks(),
      ready: async () => {
        if (closed) throw new DomainError("unavailable", "The server is stopping.");
        await installation.ping();
      },
    },
  });
  const relay = new Relay({ ...ports, tokens: services.connectTokens, tunnels, requests, log });
  const routes = [...daemonUpgrades({ links, tunnels, admissions }), relay.upgrades];
  const upgrades = new UpgradeDispatcher({ routes, authenticate, ids: ports.ids, log });
  divertRequests(app.server, relay, PLATFORM_BODY_MS);
  const calls = new CallsInFlight(app.server);
  return {
    listen: async () => {
      await app.ready();
      upgrades.attach(app.server);
      await listen(app.server, addresses.platform, context.tls);
    },
    stop: () => {
      deadline.begin();
      services.workloadLogs.close();
      upgrades.stop();
      closed = app.close();
    },
    cut: async () => {
      await links.close();
      tunnels.close();
      upgrades.close();
      await Promise.race([calls.whenIdle(), delay(deadline.leftMs(), undefined, { ref: false })]);
      app.server.closeAllConnections();
      await closed;
    },
  };
}

function createPlatformMetrics(
  context: Context,
  services: PlatformServices,
  counted: Pick<MetricSources, "platformRequests" | "inference" | "admissions">,
): ReturnType<typeof createMetrics> {
  const { nodes } = nodeStores(context.installation.longReads);
  const nodesByStatus = (): ReturnType<typeof nodes.countByStatus> => nodes.countByStatus();
  const { agents } = agentStores(context.installation.longReads);
  const agentsByState = (): ReturnType<typeof agents.countByState> => agents.countByState();
  const figures = { nodesByStatus, agentsByState, fleet: services.nodes.liveness };
  return createMetrics({ ...services, ...context, ...counted, ...figures });
}

/** How many daemons come in at a time: after a restart all of them are at the door. */
function createAdmissions({ config, ports }: Context, { hub }: Pick<PlatformServices, "hub">) {
  const { connectsPerSecond } = config.fleet;
  return {
    links: new UpgradeAdmission(connectsPerSecond, ports.clock, () => hub.greeting >= MAX_GREETING),
    tunnels: new UpgradeAdmission(connectsPerSecond, ports.clock),
  };
}

export type PlatformServices = Services & ChatTurns;

interface Parts {
  readonly context: Context;
  readonly services: PlatformServices;
  readonly inference: InferenceHost;
}

function registerChat(app: PlatformApp, { context: { config, ports }, services, inference }: Parts): void {
  const { allowedOrigins } = config.chat;
  const { maxBodyBytes } = config.inference;
  const { admission } = inference;
  const { access } = services.projects;
  registerChatRoutes(app, { ...services, access, admission, maxBodyBytes, allowedOrigins, clock: ports.clock });
}

type RouteServices = Services & { readonly limits: RateLimits; readonly clock: Clock; readonly publicUrl: string };

function registerRoutes(app: PlatformApp, services: RouteServices): void {
  const { auditLog, idempotency, projects, projectRemoval, members, invitations, nodes, limits } = services;
  registerPages(app, services, randomBytes);
  registerMeRoutes(app, services);
  registerOAuthRoutes(app, { ...services, limit: limits.oauth });
  registerProjectRoutes(app, { projects, projectRemoval, idempotency });
  registerMemberRoutes(app, members);
  registerInvitationRoutes(app, { invitations, idempotency, limit: limits.invitations });
  registerKeyRoutes(app, services);
  registerProviderRoutes(app, services);
  registerAliasRoutes(app, services.aliases);
  registerNodeRoutes(app, { ...nodes, idempotency });
  registerNodeObservedRoutes(app, nodes);
  registerNodeLifeRoutes(app, { ...nodes, idempotency });
  registerMachineRoutes(app, services.machines.sweeps);
  registerPlanRoutes(app, services.machines.plans);
  registerDesiredDaemonRoutes(app, nodes.desiredDaemons);
  registerNodeLogRoutes(app, services.nodeLogs);
  registerAgentLogRoutes(app, services.agentLogs);
  registerAgentConnectRoutes(app, services.agentConnect);
  registerWorkloadConnectRoutes(app, services.workloadConnect);
  registerNodeSecretRoutes(app, nodes.nodeSecrets);
  registerAgentRoutes(app, services);
  registerAgentLifeRoutes(app, services);
  registerAgentLimitsRoutes(app, services.agentLimits);
  registerAgentSecretRoutes(app, services.agentSecrets);
  registerConnectorRoutes(app, services.connectors);
  registerDaemonBuildRoutes(app, services.daemonBuilds);
  registerInstallRoutes(app, { ...services, installScript: join(programFolder(), "install/install.sh") });
  registerAuditRoutes(app, auditLog);
  registerBillingRoutes(app, services);
  registerLimitRoutes(app, services.projectLimits);
  registerUsageRoutes(app, services.usage);
  registerNodeDaemonRoutes(app, { ...nodes, limits });
}
