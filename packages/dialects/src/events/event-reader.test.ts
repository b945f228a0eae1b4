import { afterEach, expect, test, vi } from "vitest";
import { EventReader } from "./event-reader.ts";

afterEach(() => void vi.restoreAllMocks());

test.each(["\n", "\r", "\r\n"])(
  "an event of many lines that end in %j is searched for line ends only once",
  (lineEnd) => {
    const bytes = Buffer.from(`${`: x${lineEnd}`.repeat(5000)}data: {"id":"a"}${lineEnd}`);
    const indexOf = Buffer.prototype.indexOf;
    let searched = 0;
    vi.spyOn(Buffer.prototype, "indexOf").mockImplementation(function (this: Buffer, ...args: unknown[]) {
      const found = Reflect.apply(indexOf, this, args) as number;
      searched += (found === -1 ? this.length : found) - Number(args[1] ?? 0);
      return found;
    });
    const reader = new EventReader(["id"]);
    reader.push(bytes);
    expect(reader.members.value("id")).toBe("a");
    expect(searched).toBeLessThan(4 * bytes.length);
  },
);
