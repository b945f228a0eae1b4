import type { Driver } from "kysely";

/**
 * Has the driver's rollback never fail. It runs because a statement failed, and its own error would hide the first one: SQLite has
 * already rolled back when the disk is full, and a broken connection takes its transaction with it.
 */
export function withQuietRollback(driver: Driver): Driver {
  const rollback = driver.rollbackTransaction.bind(driver);
  driver.rollbackTransaction = async (connection) => {
    await rollback(connection).catch(() => undefined);
  };
  return driver;
}
