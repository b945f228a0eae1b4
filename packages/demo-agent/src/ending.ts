import type { Server } from "node:http";

/**
 * Lets what runs end, and takes in nothing more. Node leaves connections open on which nothing was asked yet, such as a proxy holds
 * ready, and with them the program, until it is killed.
 * @returns the call that begins it
 */
export function endsWhenIdle(server: Server): () => void {
  let running = 0;
  let ending = false;
  const endIfIdle = (): void => {
    if (ending && running === 0) server.closeAllConnections();
  };
  server.on("request", (_request, response) => {
    running += 1;
    response.once("close", () => {
      running -= 1;
      endIfIdle();
    });
  });
  return () => {
    ending = true;
    server.close();
    endIfIdle();
  };
}
