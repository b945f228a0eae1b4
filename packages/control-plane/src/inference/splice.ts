/** Where something stands in a body: byte offsets, the end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A span and what comes in its place; an empty span is an insertion. */
export interface Edit extends Span {
  readonly bytes: Buffer;
}

/**
 * @param edits in order, not overlapping, within the body.
 * @returns the same bytes with the spans replaced; every Buffer that no edit touches is passed on as it is.
 */
export function splice(body: readonly Buffer[], edits: readonly Edit[]): Buffer[] {
  const spliced: Buffer[] = [];
  let next = 0;
  let base = 0;
  /** Up to here the body's bytes are copied or replaced. */
  let done = 0;
  for (const chunk of body) {
    const end = base + chunk.length;
    for (let edit = edits[next]; edit !== undefined && edit.start < end; edit = edits[next]) {
      if (edit.start > done) spliced.push(chunk.subarray(done - base, edit.start - base));
      spliced.push(edit.bytes);
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
