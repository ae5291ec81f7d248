-- How many executions a task had when it got a new idempotency key in its present round. Null: it did not.
ALTER TABLE live ADD COLUMN key_from integer;
