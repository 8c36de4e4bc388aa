-- A member that cannot be read is marked and passed over, and the others of the group are told (decision 73).

ALTER TABLE rules.member ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;

-- Dead rows are few, and found without a walk over those that are alive.
CREATE INDEX member_dead_at ON rules.member (dead_at) WHERE dead_at IS NOT NULL;
