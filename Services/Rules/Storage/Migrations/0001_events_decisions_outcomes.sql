-- What happened, who was to hear of it, and what the providers said. The migrator has made the schema.

-- The group that the service's login is a member of. Roles belong to the whole cluster, so it may be there already, and
-- another database's migration may be making it at this moment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'heliograph_rules') THEN
        CREATE ROLE heliograph_rules NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

-- Every event that was decided about, once: CloudEvents calls two events the same when source and id are.
CREATE TABLE rules.event (
    -- Derived from app, source and id: 16 bytes to look a duplicate up by instead of three texts.
    key uuid PRIMARY KEY,
    app text NOT NULL,
    source text NOT NULL,
    id text NOT NULL,
    type text NOT NULL,
    -- The version of the rules that it was decided by.
    rule_set uuid NOT NULL,
    arrived_at timestamptz NOT NULL
);
CREATE INDEX event_id ON rules.event (id);
CREATE INDEX event_arrived_at ON rules.event USING brin (arrived_at);

-- One row for each user who was to be told: the notification's id follows from event, rule and user.
CREATE TABLE rules.decision (
    notification uuid PRIMARY KEY,
    event uuid NOT NULL,
    rule text NOT NULL,
    user_id text NOT NULL,
    decided_at timestamptz NOT NULL
);
CREATE INDEX decision_event ON rules.decision (event);
CREATE INDEX decision_decided_at ON rules.decision USING brin (decided_at);

-- What became of a notification on a device, each answer once. The registry answers without a device.
CREATE TABLE rules.outcome (
    notification uuid NOT NULL,
    device uuid,
    disposition text NOT NULL,
    origin text NOT NULL,
    reason text,
    at timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (notification, device, disposition)
);
CREATE INDEX outcome_at ON rules.outcome USING brin (at);

-- The service writes rows and never changes one; what is old is deleted.
GRANT USAGE ON SCHEMA rules TO heliograph_rules;
GRANT SELECT ON rules.migration TO heliograph_rules;
GRANT SELECT, INSERT, DELETE ON rules.event, rules.decision, rules.outcome TO heliograph_rules;
