import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { BUILD_ARCHITECTURES, type BuildArchitecture, buildVersionSchema } from "@fairlead/protocol/daemon-builds";
import { z } from "zod";

export interface BuildArguments {
  readonly version: string | undefined;
  readonly architectures: readonly BuildArchitecture[];
  readonly out: string;
  readonly help: boolean;
}

const OPTIONS = {
  version: { type: "string" },
  arch: { type: "string", multiple: true },
  out: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

const architecturesSchema = z.array(
  z.enum(BUILD_ARCHITECTURES, { error: `--arch must be one of ${BUILD_ARCHITECTURES.join(", ")}` }),
);

/** @throws TypeError or ZodError whose message says what is wrong with the arguments. */
export function readBuildArguments(argv: readonly string[], defaultOut: string): BuildArguments {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  return {
    version: values.version === undefined ? undefined : buildVersionSchema.parse(values.version),
    architectures: architecturesSchema.parse([...new Set(values.arch ?? BUILD_ARCHITECTURES)]),
    out: resolve(values.out ?? defaultOut),
    help: values.help ?? false,
  };
}

/** For the last line of a failed build. */
export function wordsOf(error: unknown): string {
  if (error instanceof z.ZodError) return error.issues.map(({ message }) => message).join("; ");
  return error instanceof Error ? error.message : String(error);
}
