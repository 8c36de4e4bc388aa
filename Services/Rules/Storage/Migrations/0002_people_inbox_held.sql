-- Who wants to hear what, what was kept for them, what waits, and why.

-- One user of one app: what they chose, and when they were last pushed.
CREATE TABLE rules.person (
    app text NOT NULL,
    user_id text NOT NULL,
    -- Sparse, as the service writes it: what is absent is as the rule file says.
    settings jsonb NOT NULL DEFAULT '{}',
    -- By cap: the moments of the last pushes, in milliseconds; no more of them than the cap allows.
    logs jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (app, user_id)
    -- Room for a new version of a row beside the old one.
) WITH (fillfactor = 70);

-- Where an app is open now. Losing it costs a push too many.
CREATE UNLOGGED TABLE rules.presence (
    app text NOT NULL,
    user_id text NOT NULL,
    device text NOT NULL,
    viewing text,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (app, user_id, device)
);
CREATE INDEX presence_expires_at ON rules.presence (expires_at);

-- What a rule said about an event, once for everybody who finds it in an inbox or is still to hear it.
CREATE TABLE rules.saying (
    -- Derived from event and rule.
    id uuid PRIMARY KEY,
    app text NOT NULL,
    rule text NOT NULL,
    lane text NOT NULL,
    -- As it was rendered. Not jsonb, which has no NUL in a text.
    content json NOT NULL,
    mutes text[] NOT NULL,
    expires_at timestamptz,
    delivery text,
    correlation text NOT NULL,
    traceparent text,
    said_at timestamptz NOT NULL
);
CREATE INDEX saying_said_at ON rules.saying USING brin (said_at);

CREATE TABLE rules.inbox (
    notification uuid PRIMARY KEY,
    app text NOT NULL,
    user_id text NOT NULL,
    saying uuid NOT NULL,
    thread text,
    at timestamptz NOT NULL,
    read_at timestamptz
);
CREATE INDEX inbox_list ON rules.inbox (app, user_id, at DESC, notification);
CREATE INDEX inbox_unread ON rules.inbox (app, user_id) WHERE read_at IS NULL;

-- What waits for the end of quiet hours or for a cap to open; and, leaving, what was let go and is being published.
CREATE TABLE rules.held (
    notification uuid PRIMARY KEY,
    app text NOT NULL,
    user_id text NOT NULL,
    saying uuid NOT NULL,
    event uuid NOT NULL,
    badge integer,
    -- When it was to be pushed for the first time.
    since timestamptz NOT NULL,
    -- When it is judged again; if leaving, when it is published again.
    due_at timestamptz NOT NULL,
    -- What it was let go with; null as long as it waits.
    leaving text,
    quiet_holds integer NOT NULL,
    -- The next decision's.
    step integer NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX held_due_at ON rules.held (due_at);

-- Decisions are a log: what is held is decided about again. The one before this migration was always to push.
ALTER TABLE rules.decision
    ADD COLUMN step integer NOT NULL DEFAULT 0,
    ADD COLUMN answer text NOT NULL DEFAULT 'push',
    ADD COLUMN reason text NOT NULL DEFAULT 'wanted',
    ADD COLUMN until timestamptz,
    ADD COLUMN rule_set uuid,
    DROP CONSTRAINT decision_pkey,
    ADD PRIMARY KEY (notification, step);

GRANT SELECT, INSERT, UPDATE, DELETE ON rules.person, rules.presence, rules.inbox, rules.held TO heliograph_rules;
GRANT SELECT, INSERT, DELETE ON rules.saying TO heliograph_rules;
