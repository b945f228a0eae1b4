import { ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { upstreamContract } from "./upstream.contract.ts";

upstreamContract("the scripted upstream of tests", () => Promise.resolve(new ScriptedUpstream()));
