import { STORES } from "../../testing.fixture.ts";
import { auditStoreContract } from "./audit-store.contract.ts";

for (const { name, open } of STORES) auditStoreContract(name, open);
