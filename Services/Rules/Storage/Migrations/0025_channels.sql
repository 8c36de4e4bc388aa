-- Broadcast channels of live surfaces. The APNs sender creates and deletes them on request.
CREATE TABLE rules.channel (
    -- The id of the requests and of their answers.
    id uuid PRIMARY KEY,
    app text NOT NULL,
    environment text NOT NULL,
    -- Null until the sender has answered.
    channel text,
    -- The live surface that uses the channel. Null: none does yet.
    item text,
    -- The time of the event that took the channel for the surface.
    started_at timestamptz,
    -- The time of the newest event whose state was, or will be, sent to it.
    newest_at timestamptz,
    -- When the surface ends, or has ended. Set without an item if no rule uses channels any more.
    ends_at timestamptz,
    -- When the sender is asked next, to create the channel or to delete it. Null: not to be asked.
    due_at timestamptz,
    dead_at timestamptz,
    dead_reason text,
    CONSTRAINT channel_is_known UNIQUE (app, environment, channel)
);
CREATE INDEX channel_item ON rules.channel (app, item) WHERE item IS NOT NULL;
CREATE INDEX channel_due_at ON rules.channel (due_at) WHERE due_at IS NOT NULL AND dead_at IS NULL;
CREATE INDEX channel_dead_at ON rules.channel (dead_at) WHERE dead_at IS NOT NULL;

-- Whether the notification goes to broadcast channels. Its users are then the names of channels.
ALTER TABLE rules.saying ADD COLUMN is_to_channels boolean NOT NULL DEFAULT false;

GRANT SELECT, INSERT, UPDATE, DELETE ON rules.channel TO heliograph_rules;
