import { STORES } from "../../testing.fixture.ts";
import { memberServiceContract } from "./member-service.contract.ts";

for (const { name, open } of STORES) memberServiceContract(name, open);
