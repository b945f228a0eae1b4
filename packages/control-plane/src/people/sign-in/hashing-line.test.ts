import { beforeEach, describe, expect, test } from "vitest";
import { HashingLine } from "./hashing-line.ts";

let line: HashingLine;
let refused: number;
let running: number;
let most: number;
let done: (() => void)[];

beforeEach(() => {
  refused = 0;
  running = 0;
  most = 0;
  done = [];
  line = new HashingLine({ atOnce: 2, waiting: 10, onRefused: () => refused++ });
});

function ask(address: string): Promise<string> {
  return line.run(address, async () => {
    running++;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => done.push(resolve));
    running--;
    return address;
  });
}

/** Ends what runs, and what that lets in, until nothing is left. */
async function finish(): Promise<void> {
  for (let round = 0; round < 100; round++) {
    done.shift()?.();
    await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const overloaded = { code: "overloaded", retryAfterSeconds: 2 };

describe("passwords queued for hashing", () => {
  test("run a few at a time, in turn", async () => {
    const order: string[] = [];
    const all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"].map(async (address) => {
      order.push(await ask(address));
    });
    expect(running).toBe(2);
    await finish();
    await Promise.all(all);
    expect(most).toBe(2);
    expect(order).toEqual(["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]);
  });

  test("are rejected immediately when the queue is full, and accepted again when it is not", async () => {
    const asked = Array.from({ length: 40 }, (_, n) => ask(`192.0.2.${n}`));
    const settled = Promise.allSettled(asked);
    await Promise.resolve();
    expect(refused).toBe(30);
    await finish();
    const rejected = (await settled).filter(({ status }) => status === "rejected");
    expect(rejected).toHaveLength(30);
    await expect(asked[39]).rejects.toMatchObject(overloaded);
    const again = ask("192.0.2.99");
    await finish();
    expect(await again).toBe("192.0.2.99");
  });

  test("from one network take only part of the queue, and leave the rest to others", async () => {
    const one = Array.from({ length: 20 }, (_, n) => ask(`2001:db8::${n + 1}`));
    const settled = Promise.allSettled(one);
    await Promise.resolve();
    expect(refused).toBe(17);
    const other = ask("198.51.100.1");
    await finish();
    expect(await other).toBe("198.51.100.1");
    expect((await settled).filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  });

  test("that cannot be hashed release their slot", async () => {
    for (let n = 0; n < 50; n++) {
      await expect(line.run("192.0.2.1", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    }
    expect(refused).toBe(0);
  });
});
