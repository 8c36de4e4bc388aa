-- The inputs of decisions, for apps that record them. The decisions are in rules.decision.
CREATE TABLE rules.recording (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app text NOT NULL,
    -- event, page (a step of a fan-out), held, digest.
    kind text NOT NULL,
    -- The key of the event. Its row in rules.event may be deleted before.
    event uuid NOT NULL,
    -- The version of the rules that decided. Null: the app no longer had the rule.
    rule_set uuid,
    -- The clock of the decision.
    at timestamptz NOT NULL,
    -- The number of decisions.
    decisions integer NOT NULL,
    -- The event as it arrived, and the state that the decisions read. Not jsonb, which has no NUL in a text.
    body json NOT NULL,
    -- Digests of all texts that may be user ids, so that an erasure finds the rows that name a user.
    names bigint[] NOT NULL
);
CREATE INDEX recording_at ON rules.recording (app, at, id);
CREATE INDEX recording_names ON rules.recording USING gin (names);

GRANT SELECT, INSERT, DELETE ON rules.recording TO heliograph_rules;

-- Operators who compare rules by recorded events need nothing else.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'heliograph_recordings') THEN
        CREATE ROLE heliograph_recordings NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

GRANT USAGE ON SCHEMA rules TO heliograph_recordings;
GRANT SELECT (id, app, kind, event, rule_set, at, decisions, body) ON rules.recording TO heliograph_recordings;
GRANT SELECT (notification, step, answer, reason, until) ON rules.decision TO heliograph_recordings;
