/** A reason not to start that the operator can mend. The message is a whole sentence for them; no stack is needed. */
export class StartError extends Error {
  override readonly name = "StartError";
}
