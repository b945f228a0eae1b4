import { type SecretSealer, UnsealError } from "./sealer.ts";

/** Sealer for tests: keeps the secrets itself and returns handles. */
export function memorySealer(keyId = "memory"): SecretSealer {
  const kept = new Map<string, { readonly plain: Uint8Array; readonly context: string }>();
  return {
    keyId,
    seal: async (plain, context) => {
      const handle = `${keyId}-${kept.size}.`;
      kept.set(handle, { plain: Uint8Array.from(plain), context });
      return handle;
    },
    open: async (handle, context) => {
      const entry = kept.get(handle);
      if (!entry || entry.context !== context) throw new UnsealError("unknown handle or different context");
      return Uint8Array.from(entry.plain);
    },
  };
}
