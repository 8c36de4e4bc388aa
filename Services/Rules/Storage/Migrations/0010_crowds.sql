-- Statements to more people than one transaction decides about: they are told in steps.
CREATE TABLE rules.crowd (
    event uuid NOT NULL,
    rule text NOT NULL,
    -- The event as it came, which each step is said from; null when everybody was told. Not jsonb, which has no NUL.
    body json,
    arrived_at timestamptz NOT NULL,
    -- Up to which user everybody was told, in the order of the bytes of their ids; and, if that is further, up to whom
    -- everybody was decided about.
    told text NOT NULL DEFAULT '',
    decided text,
    -- When it is looked at; null when everybody was told.
    due_at timestamptz,
    ended_at timestamptz,
    PRIMARY KEY (event, rule)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX crowd_due_at ON rules.crowd (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX crowd_ended_at ON rules.crowd (ended_at) WHERE ended_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON rules.crowd TO heliograph_rules;

-- Members in the order in which crowds are told, which is the same in every database.
ALTER TABLE rules.member ALTER COLUMN user_id TYPE text COLLATE "C";
