-- The versions of the policies that a worker published, and since when, as JSON.
ALTER TABLE workers ADD COLUMN policies text;
