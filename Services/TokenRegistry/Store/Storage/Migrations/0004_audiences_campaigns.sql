-- Audiences: who subscribed to what, and who was tagged; and what is told to many, with how far it has come. The release
-- before this one knows none of it and writes nothing here.

CREATE TABLE registry.membership (
    app     text        NOT NULL,
    kind    text        NOT NULL CHECK (kind IN ('topic', 'tag')),
    name    text        NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    user_id text        NOT NULL CHECK (length(user_id) BETWEEN 1 AND 256),
    -- Who has left stays known, so that a late joining from before finds out.
    active  boolean     NOT NULL,
    at      timestamptz NOT NULL,
    -- The order in which a campaign walks through it.
    PRIMARY KEY (app, kind, name, user_id)
);
CREATE INDEX membership_of_user ON registry.membership (app, user_id);

CREATE TABLE registry.campaign (
    id           uuid        PRIMARY KEY,
    app          text        NOT NULL,
    rule         text        NOT NULL,
    -- The notification as it came, without its list of users.
    notification text        NOT NULL,
    -- For people: what the audience is.
    audience     text        NOT NULL,
    state        text        NOT NULL DEFAULT 'collecting'
        CHECK (state IN ('collecting', 'running', 'paused', 'done', 'cancelled', 'expired')),
    -- About how many registrations (of everyone) or users (of a group or list) there were when it began.
    estimate     bigint,
    rate         integer     CHECK (rate > 0),
    -- With a rate: when its next push is due.
    next_at      timestamptz NOT NULL DEFAULT '-infinity',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Who was registered then is meant; absent until it begins.
    cut_off      timestamptz,
    finished_at  timestamptz,
    CHECK ((state IN ('done', 'cancelled', 'expired')) = (finished_at IS NOT NULL))
);

-- The users that a campaign lists, and which parts of its list are here. Gone when it has finished.
CREATE TABLE registry.campaign_member (
    campaign uuid NOT NULL REFERENCES registry.campaign,
    user_id  text NOT NULL,
    PRIMARY KEY (campaign, user_id)
);
CREATE TABLE registry.campaign_part (
    campaign uuid    NOT NULL REFERENCES registry.campaign,
    number   integer NOT NULL,
    PRIMARY KEY (campaign, number)
);

-- A campaign's audience is walked in ranges of user ids, side by side. Where each stands is a message (CampaignCursor),
-- which moves together with the pushes it leads to; what is here follows it, one step behind at most.
CREATE TABLE registry.campaign_range (
    campaign     uuid        NOT NULL REFERENCES registry.campaign,
    number       integer     NOT NULL,
    -- After `lower`, until `upper`, itself included; absent: until the end.
    lower        text        NOT NULL,
    upper        text,
    step         bigint      NOT NULL DEFAULT 0,
    position     text        NOT NULL,
    users        bigint      NOT NULL DEFAULT 0,
    devices      bigint      NOT NULL DEFAULT 0,
    pushes       bigint      NOT NULL DEFAULT 0,
    without      bigint      NOT NULL DEFAULT 0,
    looked       bigint      NOT NULL DEFAULT 0,
    -- Until then it is one process's turn.
    lease_until  timestamptz NOT NULL DEFAULT '-infinity',
    done         boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (campaign, number)
) WITH (fillfactor = 50);

GRANT SELECT, INSERT, UPDATE, DELETE ON registry.membership TO heliograph_token_registry;
GRANT SELECT, INSERT, UPDATE ON registry.campaign, registry.campaign_range TO heliograph_token_registry;
GRANT SELECT, INSERT, DELETE ON registry.campaign_member, registry.campaign_part TO heliograph_token_registry;

-- A version as it is compared: its leading numbers, without zeros at the end. Absent where it begins with no number.
CREATE FUNCTION registry.version_key(version text) RETURNS numeric[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT string_to_array(
        regexp_replace(substring(version FROM '^[0-9]{1,18}(?:\.[0-9]{1,18})*'), '(\.0+)+$', ''), '.')::numeric[]
$$;
GRANT EXECUTE ON FUNCTION registry.version_key TO heliograph_token_registry;
