-- What people do with what they are told, and switches for more than one channel.

-- Each once: a receipt may be sent again.
CREATE TABLE rules.receipt (
    notification uuid NOT NULL,
    what text NOT NULL CHECK (what IN ('opened', 'dismissed')),
    at timestamptz NOT NULL,
    PRIMARY KEY (notification, what)
);
CREATE INDEX receipt_at ON rules.receipt USING brin (at);
GRANT SELECT, INSERT, DELETE ON rules.receipt TO heliograph_rules;

-- What was `push` is the switch for everything.
UPDATE rules.person SET settings = (settings - 'push') || '{"enabled": false}' WHERE settings @> '{"push": false}';
UPDATE rules.person SET settings = settings - 'push' WHERE settings ? 'push';
