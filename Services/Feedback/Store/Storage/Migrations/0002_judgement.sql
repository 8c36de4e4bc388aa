-- Evidence gets a decision: it waits, and then its command is published, or it is quarantined for an operator. The
-- release before this one neither reads nor writes these columns; what it keeps, it has published itself.

ALTER TABLE feedback.evidence
    DROP CONSTRAINT evidence_finding_check,
    ADD CONSTRAINT evidence_finding_check CHECK (finding IN ('gone', 'suspect', 'misplaced')),
    ADD COLUMN decision text NOT NULL DEFAULT 'published' CHECK (decision IN (
        'stale',        -- the registration was newer than the provider's word: nothing follows
        'waiting',      -- not judged yet
        'kept',         -- a suspicion that is not enough by itself
        'quarantined',  -- an operator's to release or to discard; `detail` says why
        'discarded',    -- by an operator
        'approved',     -- its command is to be published
        'published')),  -- the broker has its command
    ADD COLUMN detail      text,
    ADD COLUMN decided_at  timestamptz,
    -- While waiting: when it is judged. While approved: when its command is published, or tried again.
    ADD COLUMN due_at      timestamptz,
    -- What the command's trace is made of.
    ADD COLUMN cause       uuid,
    ADD COLUMN correlation text,
    ADD COLUMN traceparent text;

UPDATE feedback.evidence SET decision = 'kept' WHERE finding = 'suspect';

CREATE INDEX evidence_waiting ON feedback.evidence (app, provider, environment, due_at) WHERE decision = 'waiting';
CREATE INDEX evidence_approved ON feedback.evidence (due_at) WHERE decision = 'approved';
CREATE INDEX evidence_quarantined ON feedback.evidence (app, device_id) WHERE decision = 'quarantined';
CREATE INDEX evidence_of_lane ON feedback.evidence (app, provider, environment, observed_at);

-- How each lane fared in a minute, as each sender process told it beside its evidence.
CREATE TABLE feedback.pulse (
    app         text        NOT NULL,
    provider    text        NOT NULL,
    environment text        NOT NULL,
    minute      timestamptz NOT NULL,
    sender      uuid        NOT NULL,
    -- Targets that the provider took or refused.
    answered    bigint      NOT NULL,
    -- When it last took one, in that minute or before.
    accepted_at timestamptz,
    PRIMARY KEY (app, provider, environment, minute, sender)
);

-- The blast-radius guard of each lane. Its row is also what serialises the judges of a lane.
CREATE TABLE feedback.guard (
    app         text NOT NULL,
    provider    text NOT NULL,
    environment text NOT NULL,
    -- Since when everything is quarantined; absent while nothing is.
    tripped_at  timestamptz,
    -- Until when, unless the storm goes on.
    held_until  timestamptz,
    -- What tripped it: distinct registrations refused, of so many answered, in two minutes.
    refused     bigint,
    answered    bigint,
    PRIMARY KEY (app, provider, environment),
    CHECK ((tripped_at IS NULL) = (held_until IS NULL))
);

GRANT UPDATE (decision, detail, decided_at, due_at) ON feedback.evidence TO heliograph_feedback;
GRANT SELECT, INSERT, UPDATE, DELETE ON feedback.pulse TO heliograph_feedback;
GRANT SELECT, INSERT, UPDATE ON feedback.guard TO heliograph_feedback;
