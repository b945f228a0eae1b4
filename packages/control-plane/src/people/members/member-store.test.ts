import { STORES } from "../../testing.fixture.ts";
import { memberStoreContract } from "./member-store.contract.ts";

for (const { name, open } of STORES) memberStoreContract(name, open);
