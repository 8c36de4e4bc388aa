-- Replacements of texts: events under `replace` in a rule file.

-- Whether the event replaces the texts of the item's notifications. Its own notifications are never replaced.
ALTER TABLE rules.event_item ADD COLUMN is_replacement boolean NOT NULL DEFAULT false;

-- Pushes that replace the copy of an earlier one on the phone. A redelivered event builds the same pushes from its rows.
CREATE TABLE rules.replacement (
    notification uuid PRIMARY KEY,
    app text NOT NULL,
    user_id text NOT NULL,
    event uuid NOT NULL,
    rule text NOT NULL,
    -- The notification that is replaced.
    original uuid NOT NULL,
    -- The collapse id on the phone, which the original has too.
    identifier text NOT NULL,
    expires_at timestamptz,
    at timestamptz NOT NULL
);
CREATE INDEX replacement_event ON rules.replacement (event);
CREATE INDEX replacement_user ON rules.replacement (app, user_id);
CREATE INDEX replacement_at ON rules.replacement (at);
GRANT SELECT, INSERT, UPDATE, DELETE ON rules.replacement TO heliograph_rules;

-- When the texts of an inbox item were replaced last. A stream reports the item again.
ALTER TABLE rules.inbox ADD COLUMN changed_at timestamptz;
CREATE INDEX inbox_changed_at ON rules.inbox (app, user_id, changed_at) WHERE changed_at IS NOT NULL;
