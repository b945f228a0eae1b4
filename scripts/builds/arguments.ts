import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { BUILD_ARCHITECTURES, type BuildArchitecture, buildVersionSchema } from "@fairlead/protocol/daemon-builds";
import { z } from "zod";
import { readSource, type Source } from "./checkout.ts";

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

/** @throws TypeError or ZodError for invalid arguments. */
export function readBuildArguments(argv: readonly string[], defaultOut: string): BuildArguments {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  return {
    version: values.version === undefined ? undefined : buildVersionSchema.parse(values.version),
    architectures: architecturesSchema.parse([...new Set(values.arch ?? BUILD_ARCHITECTURES)]),
    out: resolve(values.out ?? defaultOut),
    help: values.help ?? false,
  };
}

export interface BuildProgram {
  readonly name: string;
  readonly help: string;
  /** Default output folder. */
  readonly folder: string;
  /** @returns the output folder. */
  readonly build: (source: Source, options: BuildArguments) => Promise<string>;
}

/** Runs a build script. Prints the output folder or an error. */
export async function runBuild({ name, help, folder, build }: BuildProgram): Promise<void> {
  try {
    const options = readBuildArguments(process.argv.slice(2), folder);
    if (options.help) process.stdout.write(help);
    else process.stdout.write(`${await build(readSource(options.version), options)}\n`);
  } catch (error) {
    process.stderr.write(`${name}: ${wordsOf(error)}\n`);
    process.exitCode = 1;
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof z.ZodError) return error.issues.map(({ message }) => message).join("; ");
  return error instanceof Error ? error.message : String(error);
}
