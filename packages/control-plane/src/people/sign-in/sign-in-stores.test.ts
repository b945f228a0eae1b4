import { STORES } from "../../testing.fixture.ts";
import { signInStoresContract } from "./sign-in-stores.contract.ts";

for (const { name, open } of STORES) signInStoresContract(name, open);
