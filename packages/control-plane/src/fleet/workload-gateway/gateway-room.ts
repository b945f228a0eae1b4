import type { RequestTally } from "@fairlead/hosting/requests/request-tally";
import type { Credentials } from "../../access/auth/credentials.ts";
import { asRoom, type Ground } from "../../room.ts";
import type { Fleet } from "../fleet-room.ts";
import { registerAgentConnectRoutes } from "./agent-connect-routes.ts";
import { AgentConnectService } from "./agent-connect-service.ts";
import { registerWorkloadConnectRoutes } from "./workload-connect-routes.ts";
import { WorkloadConnectService } from "./workload-connect-service.ts";
import { WorkloadRelay } from "./workload-relay.ts";

interface GatewayOptions extends Ground {
  readonly fleet: Fleet;
  readonly credentials: Credentials;
  readonly requests: RequestTally;
}

/** The way to workloads from outside. */
export function openGateway({ log, clock, ids, installation, projects, fleet, ...options }: GatewayOptions) {
  const { credentials, requests, publicUrl } = options;
  const { connectTokens } = credentials;
  const { nodes, engines, agents, tunnels } = fleet;
  const { db, audit } = installation;
  const parts = { db, access: projects.access, audit, connectTokens, publicUrl };
  const workloads = new WorkloadConnectService({ ...parts, nodes, engines });
  const agentConnect = new AgentConnectService({ ...parts, agents });
  return asRoom({
    relay: new WorkloadRelay({ tokens: connectTokens, tunnels, requests, clock, ids, log, publicUrl }),
    routes: (app) => {
      registerAgentConnectRoutes(app, agentConnect);
      registerWorkloadConnectRoutes(app, workloads);
    },
  });
}
