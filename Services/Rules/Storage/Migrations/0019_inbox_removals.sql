-- Inbox items that a revocation or their user removed, for streams. A stream reports the removals of the last hour.
CREATE TABLE rules.inbox_removal (
    notification uuid PRIMARY KEY,
    app text NOT NULL,
    user_id text NOT NULL,
    at timestamptz NOT NULL,
    -- The transaction that removed the item, as inbox.written.
    written xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX inbox_removal_user ON rules.inbox_removal (app, user_id, at);
CREATE INDEX inbox_removal_at ON rules.inbox_removal (at);
GRANT SELECT, INSERT, UPDATE, DELETE ON rules.inbox_removal TO heliograph_rules;
