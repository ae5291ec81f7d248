-- Says to whom a worker's row belongs: after a failover that lost the last rows, ids are given again. Null: the version that wrote it has none.
ALTER TABLE workers ADD COLUMN token uuid;
