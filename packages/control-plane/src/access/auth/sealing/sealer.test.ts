import { randomBytes } from "node:crypto";
import { memorySealer } from "./memory-sealer.ts";
import { secretSealerContract } from "./sealer.contract.ts";
import { aesSealer } from "./sealer.ts";

let made = 0;
const nextId = (): string => `k${(made += 1)}`;

secretSealerContract("AES-256-GCM under a master key", () => aesSealer({ id: nextId(), bytes: randomBytes(32) }));
secretSealerContract("AES-256-GCM under two keys with one id", () => aesSealer({ id: "same", bytes: randomBytes(32) }));
secretSealerContract("the memory sealer", () => memorySealer(nextId()));
