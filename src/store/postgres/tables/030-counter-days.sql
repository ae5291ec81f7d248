-- What the counters of hours that are kept have in all by day: reading a week needs a twentieth of the rows. Triggers keep them, so that
-- programs of the version before, which know no such table, may go on counting.
CREATE TABLE counter_days (
  at bigint NOT NULL,
  counted_as text NOT NULL,
  count bigint NOT NULL,
  first_at bigint NOT NULL,
  PRIMARY KEY (at, counted_as)
);
INSERT INTO counter_days (at, counted_as, count, first_at)
  SELECT at - at % 86400000, counted_as, sum(count), min(first_at) FROM counters WHERE span = 3600000 GROUP BY 1, 2;

CREATE FUNCTION counters_added() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO counter_days AS d (at, counted_as, count, first_at)
  SELECT at - at % 86400000, counted_as, sum(count), min(first_at) FROM added WHERE span = 3600000 GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (at, counted_as) DO UPDATE SET count = d.count + excluded.count, first_at = least(d.first_at, excluded.first_at);
  RETURN NULL;
END $$;
CREATE FUNCTION counters_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE counter_days d SET count = d.count + c.more, first_at = least(d.first_at, c.first_at)
  FROM (SELECT n.at - n.at % 86400000 AS at, n.counted_as, sum(n.count - o.count) AS more, min(n.first_at) AS first_at
    FROM became n JOIN was o ON o.span = n.span AND o.at = n.at AND o.counted_as = n.counted_as WHERE n.span = 3600000 GROUP BY 1, 2) c
  WHERE d.at = c.at AND d.counted_as = c.counted_as;
  RETURN NULL;
END $$;
-- Counters of hours are removed for a whole day at once, when they are added to that of the day.
CREATE FUNCTION counters_removed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM counter_days WHERE at IN (SELECT DISTINCT at - at % 86400000 FROM removed WHERE span = 3600000);
  RETURN NULL;
END $$;
CREATE TRIGGER counters_added AFTER INSERT ON counters REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION counters_added();
CREATE TRIGGER counters_changed AFTER UPDATE ON counters REFERENCING OLD TABLE AS was NEW TABLE AS became
  FOR EACH STATEMENT EXECUTE FUNCTION counters_changed();
CREATE TRIGGER counters_removed AFTER DELETE ON counters REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION counters_removed();
