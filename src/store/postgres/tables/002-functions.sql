-- The schemas that hold the functions of each version. The newest is the one that was made last, whichever version opened the
-- database since; `used_at` is when a worker of that version was last at work.
CREATE TABLE functions (
  schema text PRIMARY KEY,
  nth integer GENERATED ALWAYS AS IDENTITY,
  used_at bigint NOT NULL
);
