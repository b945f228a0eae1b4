import { existsSync } from "node:fs";
import type { KeyRingStore } from "./key-ring-store.ts";
import { createMasterKey, type MasterKey, readMasterKey, settleMasterKey } from "./master-key.ts";

/** A master key is made only for a store that has sealed nothing yet. For any other, a missing file is a loss to report. @throws StartError */
export async function openMasterKey(store: KeyRingStore, masterKeyFile: string): Promise<MasterKey> {
  const keys = await store.list();
  const signing = keys.find(({ retiredAt }) => retiredAt === null);
  if (signing) return settleMasterKey(masterKeyFile, signing.masterKeyId);
  if (keys.length === 0 && !existsSync(masterKeyFile)) createMasterKey(masterKeyFile);
  return readMasterKey(masterKeyFile);
}
