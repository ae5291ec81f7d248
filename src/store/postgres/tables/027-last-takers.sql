-- The script that a worker is in. And of each type, the last worker that took it and is gone: until when its lease lasted.
ALTER TABLE workers ADD COLUMN program text;
ALTER TABLE types ADD COLUMN worker text, ADD COLUMN host text, ADD COLUMN program text, ADD COLUMN at bigint;
