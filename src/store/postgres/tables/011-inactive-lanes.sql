-- Whether the lanes of a closed source were deactivated. Where not, the next claims do it, a bounded number of sources each.
ALTER TABLE source_states ADD COLUMN lanes_inactive boolean NOT NULL DEFAULT false;
CREATE INDEX source_states_closing ON source_states (name) WHERE closed_by IS NOT NULL AND NOT lanes_inactive;
