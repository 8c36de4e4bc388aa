-- Revocations of notifications, by an operator or by a rule file. A worker carries them out. A row stays for thirty days
-- and revokes notifications of its event or item that are decided later.
CREATE TABLE rules.revocation (
    -- Derived from the request, so that a repeated request finds its row.
    id uuid PRIMARY KEY,
    app text NOT NULL,
    -- One of the three: an event's id from upstream, a notification, or an item.
    event_id text,
    notification uuid,
    item text,
    -- For an item: the time of the last event that is revoked.
    until_at timestamptz,
    -- Null: the notifications of all users.
    user_id text,
    inbox text NOT NULL CHECK (inbox IN ('remove', 'keep')),
    source text NOT NULL CHECK (source IN ('operator', 'rule')),
    -- The name of an API key, the database user of pushctl, or the place in the rule file.
    requested_by text NOT NULL,
    reason text,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When a worker may take the row; null once it is carried out. A worker moves it ahead while it works on the row.
    due_at timestamptz DEFAULT clock_timestamp(),
    ended_at timestamptz,
    -- The last notification that is done, in the order of their ids.
    position uuid,
    -- What was revoked: held notifications, entries of digests, fan-outs, pushes and inbox items.
    held bigint NOT NULL DEFAULT 0,
    gathered bigint NOT NULL DEFAULT 0,
    fan_outs bigint NOT NULL DEFAULT 0,
    pushes bigint NOT NULL DEFAULT 0,
    inbox_items bigint NOT NULL DEFAULT 0,
    dead_at timestamptz,
    dead_reason text,
    CHECK (num_nonnulls(event_id, notification, item) = 1),
    CHECK ((item IS NULL) = (until_at IS NULL)),
    CHECK ((due_at IS NULL) = (ended_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX revocation_event ON rules.revocation (app, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX revocation_item ON rules.revocation (app, item) WHERE item IS NOT NULL;
CREATE INDEX revocation_notification ON rules.revocation (notification) WHERE notification IS NOT NULL;
CREATE INDEX revocation_user ON rules.revocation (app, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX revocation_due_at ON rules.revocation (due_at) WHERE due_at IS NOT NULL AND dead_at IS NULL;
CREATE INDEX revocation_ended_at ON rules.revocation (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX revocation_dead_at ON rules.revocation (dead_at) WHERE dead_at IS NOT NULL;

-- The items of decided events, in apps whose rule file has revoke. It finds the pushes and inbox items of an item.
CREATE TABLE rules.event_item (
    event uuid NOT NULL,
    rule text NOT NULL,
    app text NOT NULL,
    item text NOT NULL,
    -- The time of the event, which a revocation compares.
    occurred_at timestamptz NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (event, rule)
);
CREATE INDEX event_item_item ON rules.event_item (app, item);
CREATE INDEX event_item_stored_at ON rules.event_item (stored_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON rules.revocation TO heliograph_rules;
GRANT SELECT, INSERT, DELETE ON rules.event_item TO heliograph_rules;
