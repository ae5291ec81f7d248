-- The span of a counter is a number of milliseconds, as everywhere: 400 days do not fit into an integer.
ALTER TABLE counters ALTER COLUMN span TYPE bigint;
