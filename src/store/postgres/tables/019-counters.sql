-- The kind and reason of the last failure of a task.
ALTER TABLE live ADD COLUMN failed_as text;

-- How many settlements were written. Each settle call adds a row to `counter_entries`: a list of keys and counts, and the places in it
-- of settlements that were not written. These are added to the counters of the minute, then of the hour and the day.
CREATE TABLE counter_entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  counts json NOT NULL,
  unwritten integer[]
);
CREATE TABLE counters (
  span integer NOT NULL,
  at bigint NOT NULL,
  counted_as text NOT NULL,
  count bigint NOT NULL,
  first_at bigint NOT NULL,
  PRIMARY KEY (span, at, counted_as)
);
