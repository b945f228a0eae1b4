import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    readonly everyDrill: boolean;
  }
}

/** Whether those drills are asked for too that take too long for every run (`scripts/test --drills`). */
export const EVERY_DRILL = inject("everyDrill");
