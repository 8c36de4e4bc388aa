-- A row that cannot be worked on is marked, with a reason, and passed over by every poll. An operator lists, retries or
-- drops it: pushctl dead-rows.

ALTER TABLE rules.held ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.crowd ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.digest ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.digest_item ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.badge ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.report ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
ALTER TABLE rules.inbox ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;
-- Settings that cannot be read whole: what can be read of them counts, so that nothing is passed over here.
ALTER TABLE rules.person ADD COLUMN dead_at timestamptz, ADD COLUMN dead_reason text;

-- Polls do not walk over dead rows.
DROP INDEX rules.held_due_at, rules.crowd_due_at, rules.digest_close_at, rules.badge_due_at, rules.report_due_at;
CREATE INDEX held_due_at ON rules.held (due_at) WHERE dead_at IS NULL;
CREATE INDEX crowd_due_at ON rules.crowd (due_at) WHERE due_at IS NOT NULL AND dead_at IS NULL;
CREATE INDEX digest_close_at ON rules.digest (close_at) WHERE close_at IS NOT NULL AND dead_at IS NULL;
CREATE INDEX badge_due_at ON rules.badge (due_at) WHERE dead_at IS NULL;
CREATE INDEX report_due_at ON rules.report (due_at) WHERE due_at IS NOT NULL AND dead_at IS NULL;

-- Dead rows are few, and found without a walk over those that are alive.
CREATE INDEX held_dead_at ON rules.held (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX crowd_dead_at ON rules.crowd (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX digest_dead_at ON rules.digest (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX digest_item_dead_at ON rules.digest_item (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX badge_dead_at ON rules.badge (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX report_dead_at ON rules.report (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX inbox_dead_at ON rules.inbox (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX person_dead_at ON rules.person (dead_at) WHERE dead_at IS NOT NULL;
