import { createAgent } from "./agent.ts";
import { readConfig } from "./config.ts";
import { endsWhenIdle } from "./ending.ts";

const config = readConfig();
const agent = createAgent(config);
agent.listen(config.port, "0.0.0.0", () => process.stdout.write(`The demo agent listens on port ${config.port}.\n`));
// What it works on is finished within the time that the daemon gives it.
process.once("SIGTERM", endsWhenIdle(agent));
