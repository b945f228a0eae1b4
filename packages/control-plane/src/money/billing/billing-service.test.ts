import { STORES } from "../../testing.fixture.ts";
import { agentBudgetContract } from "./agent-budget.contract.ts";
import { billingGuardsContract } from "./billing-guards.contract.ts";
import { billingServiceContract } from "./billing-service.contract.ts";

for (const { name, open } of STORES) {
  billingServiceContract(name, open);
  billingGuardsContract(name, open);
  agentBudgetContract(name, open);
}
