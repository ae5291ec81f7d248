-- Sums the hours again, now that the triggers are there and nobody adds any: an hour that a program of the version before added while the
-- step before summed them was missed.
LOCK TABLE counters IN SHARE ROW EXCLUSIVE MODE;
DELETE FROM counter_days;
INSERT INTO counter_days (at, counted_as, count, first_at)
  SELECT at - at % 86400000, counted_as, sum(count), min(first_at) FROM counters WHERE span = 3600000 GROUP BY 1, 2;
