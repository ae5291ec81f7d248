-- The tasks of a queue below this id have yet to be put into its new order; null: none.
ALTER TABLE queues ADD COLUMN reorder_below bigint;
