-- What providers said against registrations: the evidence that every deactivation can be traced to. The token itself
-- is not here; the registration's id is enough.

DO $$ BEGIN CREATE ROLE heliograph_feedback NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;

CREATE TABLE feedback.evidence (
    -- One notification on one device gets one word from its provider, however often it is delivered here.
    notification_id uuid        NOT NULL,
    device_id       uuid        NOT NULL,
    app             text        NOT NULL,
    provider        text        NOT NULL,
    environment     text,
    finding         text        NOT NULL CHECK (finding IN ('gone', 'suspect')),
    reason          text        NOT NULL,
    -- Since when the provider says the token is gone; absent where it tells none.
    gone_since      timestamptz,
    -- The registration time that the push was addressed with.
    registered_at   timestamptz,
    observed_at     timestamptz NOT NULL,
    PRIMARY KEY (notification_id, device_id)
);

CREATE INDEX evidence_of_device ON feedback.evidence (device_id, observed_at);

GRANT USAGE ON SCHEMA feedback TO heliograph_feedback;
GRANT SELECT, INSERT ON feedback.evidence TO heliograph_feedback;
GRANT SELECT ON feedback.migration TO heliograph_feedback;
