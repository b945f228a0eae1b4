/** A range of a body in byte offsets; the end is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A range and its replacement; an empty range is an insertion. */
export interface Edit extends Span {
  readonly bytes: Buffer;
}

/**
 * @param edits ordered, not overlapping, within the body.
 * @returns the body with the ranges replaced. Buffers without edits are reused as they are.
 */
export function splice(body: readonly Buffer[], edits: readonly Edit[]): Buffer[] {
  const spliced: Buffer[] = [];
  let next = 0;
  let base = 0;
  /** The body is copied or replaced up to this offset. */
  let done = 0;
  for (const chunk of body) {
    const end = base + chunk.length;
    for (let edit = edits[next]; edit !== undefined && edit.start < end; edit = edits[next]) {
      if (edit.start > done) spliced.push(chunk.subarray(done - base, edit.start - base));
      if (edit.bytes.length > 0) spliced.push(edit.bytes);
      done = Math.max(done, edit.end);
      next++;
    }
    if (done <= base) spliced.push(chunk);
    else if (done < end) spliced.push(chunk.subarray(done - base));
    done = Math.max(done, end);
    base = end;
  }
  for (const edit of edits.slice(next)) spliced.push(edit.bytes);
  return spliced;
}
