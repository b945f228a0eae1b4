import { createAgent } from "./agent.ts";
import { readDemoAgentConfig } from "./config.ts";
import { endsWhenIdle } from "./ending.ts";

const config = readDemoAgentConfig();
const agent = createAgent(config);
agent.listen(config.port, "0.0.0.0", () =>
  process.stdout.write(`The demo agent is listening on port ${config.port}.\n`),
);
// Finish running tasks within the daemon's grace period.
process.once("SIGTERM", endsWhenIdle(agent));
