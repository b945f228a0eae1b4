import { LRUCache } from "lru-cache";

/**
 * Remembers at most `max` things; the least used goes first. For caches of tens of thousands: told a `max`, the library makes its tables
 * for all of them at once, and the caches of a server without any load took 28 MB. Told a size, it lets them grow.
 */
export function growingCache<V extends NonNullable<unknown>>(
  max: number,
  options: Pick<LRUCache.Options<string, V, unknown>, "ttl" | "dispose"> = {},
): LRUCache<string, V> {
  return new LRUCache<string, V>({ ...options, maxSize: max, sizeCalculation: () => 1 });
}
