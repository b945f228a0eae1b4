/** A member of a stream in either dialect. */
export interface StreamEvent extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

/** The events of a stream, and whether it ends with the end mark. What was cut off in mid-event counts for nothing. */
export function readEvents(stream: string): { readonly events: StreamEvent[]; readonly done: boolean } {
  const frames = stream.split("\n\n").slice(0, -1);
  const data = frames.flatMap((frame) => {
    const line = frame.split("\n").find((each) => each.startsWith("data: "));
    return line === undefined ? [] : [line.slice("data: ".length)];
  });
  const events = data.filter((each) => each !== "[DONE]").map((each) => JSON.parse(each) as StreamEvent);
  return { events, done: data.at(-1) === "[DONE]" };
}
