-- For reading what happened in a span of time. These indexes cost a write almost nothing, because rows are added in the order of time.
CREATE INDEX executions_ended ON executions USING brin (ended_at) WITH (pages_per_range = 16, autosummarize = on);
CREATE INDEX old_executions_ended ON old_executions USING brin (ended_at) WITH (pages_per_range = 16, autosummarize = on);
CREATE INDEX acts_at ON acts USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
