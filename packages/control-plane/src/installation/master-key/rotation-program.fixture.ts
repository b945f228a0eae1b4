import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { openDatabase } from "../db/open.ts";
import { type RotationStep, rotateMasterKey } from "./rotate-master-key.ts";

/** A program that rotates the master key and dies at a step as by `kill -9`: `rotation-program STORE MASTER-KEY-FILE STEP`. */
const [, , file = "", masterKeyFile = "", deadly = ""] = process.argv;
const { db } = openDatabase({ file });
await rotateMasterKey({
  db,
  masterKeyFile,
  clock: systemClock,
  ids: systemIds(() => systemClock.now()),
  onStep: (step: RotationStep) => {
    if (step === deadly) process.kill(process.pid, "SIGKILL");
  },
});
