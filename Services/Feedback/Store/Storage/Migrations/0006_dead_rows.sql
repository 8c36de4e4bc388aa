-- Evidence that cannot be read is set aside with a reason and stops no other. The release before this one works on: it knows
-- nothing of these columns.

ALTER TABLE feedback.evidence
    -- When the judge set the row aside, and a word that says why; absent: it is judged and published.
    ADD COLUMN dead_at     timestamptz,
    ADD COLUMN dead_reason text;
GRANT UPDATE (dead_at, dead_reason) ON feedback.evidence TO heliograph_feedback;
