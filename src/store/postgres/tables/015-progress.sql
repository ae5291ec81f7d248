-- The last progress that an execution reported, and when. A task may have it without a checkpoint.
ALTER TABLE checkpoints ALTER COLUMN value DROP NOT NULL;
ALTER TABLE checkpoints ADD COLUMN progress text;
ALTER TABLE checkpoints ADD COLUMN progress_at bigint;

-- The view as it was, with these two columns.
DO $$
BEGIN
  EXECUTE 'CREATE OR REPLACE VIEW holdfast_tasks AS SELECT v.*, c.progress, c.progress_at FROM ('
    || rtrim(pg_get_viewdef('holdfast_tasks'::regclass), ';') || ') v LEFT JOIN checkpoints c ON c.task = v.id';
END $$;
