import { STORES } from "../testing.fixture.ts";
import { billingServiceContract } from "./billing-service.contract.ts";

for (const { name, open } of STORES) billingServiceContract(name, open);
