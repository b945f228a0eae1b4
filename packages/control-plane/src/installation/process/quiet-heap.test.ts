import { describe, expect, test } from "vitest";
import { type HeapControls, LOOK_MS, processControls, QuietHeap } from "./quiet-heap.ts";

const HALF_A_MINUTE = 15;
const FIVE_MINUTES = 150;

class RecordedControls implements HeapControls {
  at = 0;
  now = 0;
  readonly asked: string[] = [];

  load(): number {
    return this.at;
  }

  allowGrowth(percent: number): void {
    this.asked.push(`${percent} %`);
  }

  collect(): void {
    this.asked.push("collect");
  }
}

function stage(): { readonly controls: RecordedControls; readonly looks: (count: number, load: number) => void } {
  const controls = new RecordedControls();
  const heap = new QuietHeap(controls, { monotonic: () => controls.now });
  const looks = (count: number, load: number): void => {
    controls.at = load;
    for (let n = 0; n < count; n++) {
      controls.now += LOOK_MS;
      heap.look();
    }
  };
  return { controls, looks };
}

describe("a heap", () => {
  test("is left to V8 until the server is quiet for half a minute, and is then bounded and collected once", () => {
    const { controls, looks } = stage();
    looks(HALF_A_MINUTE - 1, 0.1);
    expect(controls.asked).toEqual([]);
    looks(FIVE_MINUTES * 3, 0.1);
    expect(controls.asked).toEqual(["25 %", "collect"]);
  });

  test("is not collected while work keeps arriving", () => {
    const { controls, looks } = stage();
    for (let n = 0; n < 50; n++) {
      looks(HALF_A_MINUTE - 1, 0.1);
      looks(1, 0.25);
    }
    expect(controls.asked).toEqual([]);
  });

  test("may grow again at the first check that finds load", () => {
    const { controls, looks } = stage();
    looks(HALF_A_MINUTE, 0.1);
    looks(1, 0.31);
    expect(controls.asked).toEqual(["25 %", "collect", "150 %"]);
    looks(10, 0.9);
    expect(controls.asked).toHaveLength(3);
  });

  test("stays bounded under a load between quiet and busy", () => {
    const { controls, looks } = stage();
    looks(HALF_A_MINUTE, 0.1);
    looks(100, 0.25);
    expect(controls.asked).toEqual(["25 %", "collect"]);
  });

  test("is collected at most once in five minutes, however often the load comes and goes", () => {
    const { controls, looks } = stage();
    const collections = (): number => controls.asked.filter((asked) => asked === "collect").length;
    looks(HALF_A_MINUTE, 0.1);
    looks(1, 0.9);
    looks(FIVE_MINUTES - 2, 0.1);
    expect(collections()).toBe(1);
    looks(1, 0.1);
    expect(collections()).toBe(2);
  });
});

describe("the controls of this process", () => {
  test("collect what is no longer referenced, and expose nothing to the rest of the program", async () => {
    const controls = processControls();
    const gone = new WeakRef(Array.from({ length: 1000 }, () => ({})));
    // A WeakRef holds what it refers to until the running job ends.
    await new Promise(setImmediate);
    controls.collect();
    expect(gone.deref()).toBeUndefined();
    expect(Reflect.has(globalThis, "gc")).toBe(false);
  });

  test("report how busy the main thread was since the last query", async () => {
    const controls = processControls();
    // Between two turns of the event loop nothing is idle, and a loop that waits for a timer is.
    await expect.poll(() => controls.load()).toBeLessThan(1);
    controls.load();
    const end = performance.now() + 5;
    while (performance.now() < end);
    expect(controls.load()).toBe(1);
  });
});
