import { writeFileSync } from "node:fs";
import { commandReference } from "../packages/cli/src/command-reference.ts";
import { processContext } from "../packages/cli/src/main.ts";
import { buildProgram } from "../packages/cli/src/program.ts";
import { agentLifecycleReference } from "../packages/control-plane/src/agents/agent-lifecycle-reference.ts";
import { auditReference } from "../packages/control-plane/src/audit/audit-reference.ts";
import { accessReference } from "../packages/control-plane/src/auth/access-reference.ts";
import { configReference } from "../packages/control-plane/src/config-reference.ts";
import { errorReference } from "../packages/control-plane/src/http/error-reference.ts";
import { bridgeReference } from "../packages/control-plane/src/inference/bridge/bridge-reference.ts";
import { metricsReference } from "../packages/control-plane/src/metrics/metrics-reference.ts";
import { nodeStatusReference } from "../packages/control-plane/src/nodes/node-status-reference.ts";
import { providerReference } from "../packages/control-plane/src/providers/provider-reference.ts";
import { reconcileReference } from "../packages/daemon/src/reconcile/reconcile-reference.ts";

/** Writes the pages that are generated from code; unit tests fail while they differ. Run: `node --conditions=fairlead-source scripts/generate-docs.ts` */
const docs = new URL("../docs/", import.meta.url);
writeFileSync(new URL("access.md", docs), accessReference());
writeFileSync(new URL("agent-status.md", docs), agentLifecycleReference());
writeFileSync(new URL("audit.md", docs), auditReference());
writeFileSync(new URL("bridge.md", docs), bridgeReference());
writeFileSync(new URL("cli.md", docs), commandReference(buildProgram(processContext())));
writeFileSync(new URL("config.md", docs), configReference());
writeFileSync(new URL("errors.md", docs), errorReference());
writeFileSync(new URL("metrics.md", docs), metricsReference());
writeFileSync(new URL("node-status.md", docs), nodeStatusReference());
writeFileSync(new URL("providers.md", docs), providerReference());
writeFileSync(new URL("reconcile.md", docs), reconcileReference());
