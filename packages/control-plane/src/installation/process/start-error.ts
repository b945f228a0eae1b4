/** A start failure that the operator can fix. The message is a complete sentence; no stack is needed. */
export class StartError extends Error {
  override readonly name = "StartError";
}
