import type { JsonObject } from "../convert/wire.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import { type Edit, splice } from "../json/splice.ts";
import type { CallScan } from "./call-scan.ts";
import type { Dialect } from "./dialect.ts";

/** A call's body as submitted, and its conversion for the upstream (docs/interface.md §1, decisions/0017). */

export interface SubmittedBody {
  readonly bytes: readonly Buffer[];
  readonly scan: CallScan;
  readonly dialect: Dialect;
  /** Set if the call's creator has parsed the body. */
  readonly parsed?: JsonObject | undefined;
}

/** Whether the caller requested usage; otherwise it is requested anyway, and hidden from the caller. */
export function asksForUsage({ scan, dialect }: SubmittedBody): boolean {
  return !DIALECT_SPECS[dialect].request.usageOnRequest || scan.streamOptions?.includeUsage?.value === true;
}

/**
 * @param model the upstream's name for it. Edits in place only the model name and the request for usage; drops a byte order mark,
 * which many parsers reject.
 */
export function bodyForUpstream(body: SubmittedBody, model: string): Buffer[] {
  const edits = [markEdit(body.scan), modelEdit(body.scan, model), usageEdit(body)].filter((edit) => edit !== null);
  return splice(
    body.bytes,
    edits.sort((a, b) => a.start - b.start),
  );
}

function markEdit({ markBytes }: CallScan): Edit | null {
  return markBytes === 0 ? null : { start: 0, end: markBytes, bytes: Buffer.alloc(0) };
}

function modelEdit(scan: CallScan, model: string): Edit {
  const value = JSON.stringify(model);
  if (scan.model !== null) return { ...scan.model.span, bytes: Buffer.from(value) };
  return insertion(scan, `"model":${value}`);
}

function usageEdit(body: SubmittedBody): Edit | null {
  const { scan } = body;
  if (!scan.stream || asksForUsage(body)) return null;
  const options = scan.streamOptions;
  if (options === null) return insertion(scan, '"stream_options":{"include_usage":true}');
  if (options.isNull) return { ...options.span, bytes: Buffer.from('{"include_usage":true}') };
  if (options.includeUsage !== null) return { ...options.includeUsage.span, bytes: Buffer.from("true") };
  return insertion(options, '"include_usage":true');
}

function insertion({ start, empty }: { readonly start: number; readonly empty: boolean }, member: string): Edit {
  return { start, end: start, bytes: Buffer.from(empty ? member : `${member},`) };
}
