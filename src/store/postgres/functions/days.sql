-- Makes the partitions of the day of a time, where they are missing.
CREATE FUNCTION need_day(p_at bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM days WHERE day = p_at / 86400000) THEN
    PERFORM add_day((p_at / 86400000)::integer);
  END IF;
END $$;
