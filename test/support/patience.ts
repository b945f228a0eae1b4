import { inject, vi } from "vitest";

/** `expect.poll` has a setting for how long it asks; these have none, and give up after a second where the test says nothing. */

declare module "vitest" {
  interface ProvidedContext {
    /** How long a test waits for a condition where it says nothing else. */
    patienceMs: number;
  }
}

type Options = Parameters<typeof vi.waitFor>[1];

const patient = Symbol.for("fairlead.patient");

// Test files may share a process, and each of them comes by here.
if (!Reflect.has(vi, patient)) {
  const { waitFor, waitUntil } = vi;
  const timeout = inject("patienceMs");
  const withPatience = (options: Options): Options => (typeof options === "number" ? options : { timeout, ...options });
  Object.assign(vi, {
    [patient]: true,
    waitFor: ((ask, options) => waitFor(ask, withPatience(options))) satisfies typeof waitFor,
    waitUntil: ((ask, options) => waitUntil(ask, withPatience(options))) satisfies typeof waitUntil,
  });
}
