-- Keys that a task has for a time. `released`: its state does not need the key any more, which is free at `until`.
ALTER TABLE uniques ADD COLUMN until bigint;
ALTER TABLE uniques ADD COLUMN released boolean NOT NULL DEFAULT false;
