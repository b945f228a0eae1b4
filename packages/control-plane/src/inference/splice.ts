import type { Span } from "./call-scan.ts";

/** @returns the same bytes with one span replaced; every Buffer that the span does not touch is passed on as it is. */
export function splice(body: readonly Buffer[], span: Span, replacement: Buffer): Buffer[] {
  const spliced: Buffer[] = [];
  let base = 0;
  let placed = false;
  for (const chunk of body) {
    const end = base + chunk.length;
    if (end <= span.start || base >= span.end) {
      spliced.push(chunk);
    } else {
      if (base < span.start) spliced.push(chunk.subarray(0, span.start - base));
      if (!placed) spliced.push(replacement);
      placed = true;
      if (end > span.end) spliced.push(chunk.subarray(span.end - base));
    }
    base = end;
  }
  return spliced;
}

/** The model's name as the upstream knows it, as a JSON value. */
export function modelValue(name: string): Buffer {
  return Buffer.from(JSON.stringify(name));
}
