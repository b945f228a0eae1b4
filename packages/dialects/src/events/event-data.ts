const LINE_END = /\r\n|\r|\n/;
const BYTE_ORDER_MARK = /^\ufeff/;

/** What one whole event of an event stream says. */
export interface EventData {
  /** The field `event`, or "". */
  readonly name: string;
  /** Null where it has none: a comment. */
  readonly data: string | null;
}

export function eventData(event: string): EventData {
  let name = "";
  const data: string[] = [];
  for (const line of event.replace(BYTE_ORDER_MARK, "").split(LINE_END)) {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return { name, data: data.length === 0 ? null : data.join("\n") };
}
