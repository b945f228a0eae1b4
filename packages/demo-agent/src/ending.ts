import type { Server } from "node:http";

/**
 * Stops the server when running requests are finished. Node keeps unused connections open, for example of a proxy,
 * which would keep the program running until it is killed.
 * @returns a function that starts the shutdown
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
