-- The devices that a held notification selects: the member devices of a notification's message. Null: all.
ALTER TABLE rules.saying ADD COLUMN devices json;

-- Items that are done for one user, because the user opened or dismissed a notification about them. A row drops
-- notifications of earlier events that are decided later, and stays for thirty days.
CREATE TABLE rules.done_by (
    app text NOT NULL,
    item text NOT NULL,
    user_id text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (app, item, user_id)
);
CREATE INDEX done_by_user ON rules.done_by (app, user_id);
CREATE INDEX done_by_at ON rules.done_by (at);

GRANT SELECT, INSERT, UPDATE, DELETE ON rules.done_by TO heliograph_rules;
