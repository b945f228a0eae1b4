import { STORES } from "../../testing.fixture.ts";
import { usageStoreContract } from "./usage-store.contract.ts";

for (const { name, open } of STORES) usageStoreContract(name, open);
