-- Who belongs together, what waits for its day, and what is gathered to be said in one.

-- The last word about each member of a group. Who has left stays for a while, so that an older word comes too late.
CREATE TABLE rules.member (
    app text NOT NULL,
    circle text NOT NULL,
    user_id text NOT NULL,
    role text,
    has_left boolean NOT NULL,
    -- When the upstream said so.
    at timestamptz NOT NULL,
    PRIMARY KEY (app, circle, user_id)
);

-- When a group was last told as a whole: an older word about a member is not heard.
CREATE TABLE rules.circle (
    app text NOT NULL,
    circle text NOT NULL,
    told_at timestamptz NOT NULL,
    PRIMARY KEY (app, circle)
);

-- What need not be told any more, for events about it that come late.
CREATE TABLE rules.done (
    app text NOT NULL,
    item text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (app, item)
);
CREATE INDEX done_at ON rules.done (at);

-- What is not said again to a person until then.
CREATE TABLE rules.told (
    app text NOT NULL,
    user_id text NOT NULL,
    key text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (app, user_id, key)
);
CREATE INDEX told_until ON rules.told (until);

-- What is pushed instead of the content, where not everything may leave the house.
ALTER TABLE rules.saying ADD COLUMN preview json;

ALTER TABLE rules.held
    -- Why it waits: held (the person's affair), scheduled (the event's), summary (of a digest: it is due).
    ADD COLUMN kind text NOT NULL DEFAULT 'held',
    ADD COLUMN item text,
    -- When the event happened that it is about.
    ADD COLUMN said_at timestamptz,
    -- Whether the inbox has it, or is to get it when it is due.
    ADD COLUMN in_inbox boolean NOT NULL DEFAULT true,
    -- What a digest is to know of it, if it becomes part of one.
    ADD COLUMN entry json;
CREATE INDEX held_item ON rules.held (app, item) WHERE item IS NOT NULL;

-- A bucket: what one rule gathers for one person.
CREATE TABLE rules.digest (
    app text NOT NULL,
    user_id text NOT NULL,
    bucket text NOT NULL,
    rule text NOT NULL,
    -- When it is looked at; null when nothing is in it that is to be told.
    close_at timestamptz,
    -- What close_at was computed from, for when the person's time or zone changes.
    planned_at timestamptz NOT NULL,
    -- The local date that was told last, as days since 1970-01-01, and its moment.
    last_day integer,
    last_at timestamptz,
    PRIMARY KEY (app, user_id, bucket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX digest_close_at ON rules.digest (close_at) WHERE close_at IS NOT NULL;

CREATE TABLE rules.digest_item (
    app text NOT NULL,
    user_id text NOT NULL,
    bucket text NOT NULL,
    item text NOT NULL,
    notification uuid NOT NULL,
    event uuid NOT NULL,
    -- The event's id, as its upstream gave it.
    correlation text NOT NULL,
    -- What the summary can speak of, of this item.
    details json NOT NULL,
    said_at timestamptz NOT NULL,
    -- From when to when it counts.
    from_at timestamptz NOT NULL,
    end_at timestamptz,
    is_told boolean NOT NULL DEFAULT false,
    PRIMARY KEY (app, user_id, bucket, item)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX digest_item_item ON rules.digest_item (app, item);

-- Whoever changes their time or zone has their digests looked at again.
CREATE FUNCTION rules.look_at_digests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE rules.digest SET close_at = '-infinity'
        WHERE app = NEW.app AND user_id = NEW.user_id AND close_at IS NOT NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER person_moves AFTER UPDATE OF settings ON rules.person FOR EACH ROW
    WHEN (OLD.settings -> 'digest_time' IS DISTINCT FROM NEW.settings -> 'digest_time'
        OR OLD.settings -> 'zone' IS DISTINCT FROM NEW.settings -> 'zone')
    EXECUTE FUNCTION rules.look_at_digests();
CREATE TRIGGER person_arrives AFTER INSERT ON rules.person FOR EACH ROW
    WHEN (NEW.settings ?| ARRAY['digest_time', 'zone'])
    EXECUTE FUNCTION rules.look_at_digests();

-- Notifications of which the upstream wants to know what became of them.
CREATE TABLE rules.report (
    notification uuid PRIMARY KEY,
    app text NOT NULL,
    user_id text NOT NULL,
    rule text NOT NULL,
    -- The event's id.
    correlation text NOT NULL,
    -- When it is told, or told again if the broker has not confirmed it; null when there is nothing new.
    due_at timestamptz,
    at timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX report_due_at ON rules.report (due_at) WHERE due_at IS NOT NULL;

-- What became of a push, of all its devices: whether a provider was asked, how many devices it was taken for, and whether
-- it was for none although there were some.
CREATE VIEW rules.delivery AS
    SELECT notification,
        bool_or(origin <> 'registry') AS push_sent,
        count(DISTINCT device) FILTER (WHERE disposition = 'accepted') AS devices,
        bool_or(origin <> 'registry' AND disposition IN ('unregistered', 'rejected', 'expired', 'misconfigured'))
            AND NOT bool_or(disposition IN ('accepted', 'unknown')) AS is_failed
    FROM rules.outcome GROUP BY notification;

GRANT SELECT, INSERT, UPDATE, DELETE
    ON rules.member, rules.circle, rules.done, rules.told, rules.digest, rules.digest_item, rules.report
    TO heliograph_rules;
GRANT SELECT ON rules.delivery TO heliograph_rules;
GRANT EXECUTE ON FUNCTION rules.look_at_digests() TO heliograph_rules;
