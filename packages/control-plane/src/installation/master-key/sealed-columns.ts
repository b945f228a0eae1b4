import { SEALED_ANSWERS } from "../../access/answers/answer-service.ts";
import { SEALED_SIGNING_KEYS } from "../../access/auth/sealing/key-ring.ts";
import type { SealedColumn } from "../../access/auth/sealing/sealed-column.ts";
import { SEALED_MACHINES } from "../../fleet/machines/machine.ts";
import { SEALED_SECRETS } from "../../fleet/secrets/secret.ts";
import { SEALED_CREDENTIALS } from "../../models/providers/provider-credentials.ts";

/** Every column that the master key seals, each stated by its room. A test compares the list with what is sealed in a full store. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  ...SEALED_SIGNING_KEYS,
  ...SEALED_CREDENTIALS,
  ...SEALED_SECRETS,
  ...SEALED_ANSWERS,
  ...SEALED_MACHINES,
];
