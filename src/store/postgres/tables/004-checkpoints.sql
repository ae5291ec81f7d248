-- One saved value of a task, as JSON, which its later executions read.
CREATE TABLE checkpoints (
  task bigint PRIMARY KEY,
  value text NOT NULL
);
