-- Senders tell when they doubt a lane rather than the tokens that are refused on it, and evidence is kept for a time.

ALTER TABLE feedback.pulse
    -- While this sender doubted the lane: what was suspected then is an operator's to decide about.
    ADD COLUMN storm_since timestamptz,
    ADD COLUMN storm_until timestamptz,
    ADD CONSTRAINT pulse_storm_check CHECK ((storm_since IS NULL) = (storm_until IS NULL));

CREATE INDEX pulse_storm ON feedback.pulse (app, provider, environment, storm_until) WHERE storm_until IS NOT NULL;

-- Up to when senders' doubts have tripped the guard already.
ALTER TABLE feedback.guard ADD COLUMN told_until timestamptz;

-- What is forgotten in time.
CREATE INDEX evidence_judged ON feedback.evidence (coalesce(decided_at, observed_at))
    WHERE decision IN ('stale', 'kept', 'discarded', 'published');

GRANT DELETE ON feedback.evidence TO heliograph_feedback;
