import type { CallScan } from "./call-scan.ts";
import type { Dialect } from "./dialect.ts";
import { type Edit, splice } from "./splice.ts";

/** A call's body as the caller sent it, and the same as an upstream gets it (design §8: forwarded as submitted). */

export interface SubmittedBody {
  readonly bytes: readonly Buffer[];
  readonly scan: CallScan;
  readonly dialect: Dialect;
}

/** Whether the usage is the caller's to see; else it is asked for all the same, and kept from the caller. */
export function asksForUsage({ scan, dialect }: SubmittedBody): boolean {
  return dialect === "responses" || scan.streamOptions?.includeUsage?.value === true;
}

/** @param model as the upstream knows it. Nothing but the model's name and the wish for usage changes, in place. */
export function bodyForUpstream(body: SubmittedBody, model: string): Buffer[] {
  const edits = [modelEdit(body.scan, model), usageEdit(body)].filter((edit) => edit !== null);
  return splice(
    body.bytes,
    edits.sort((a, b) => a.start - b.start),
  );
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
