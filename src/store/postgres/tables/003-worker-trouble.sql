-- Why a worker claims nothing at present, as JSON.
ALTER TABLE workers ADD COLUMN trouble text;
