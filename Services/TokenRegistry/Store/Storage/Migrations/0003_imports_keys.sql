-- Devices come in bulk, and servers and operators have keys of their own.

-- How far each file has been brought in, written with what it led to: an import that was stopped goes on there.
CREATE TABLE registry.import (
    -- What the file is: a digest of its size, its beginning and its end.
    id          bytea       PRIMARY KEY,
    name        text        NOT NULL,
    -- The time of what the file gives no time for: what the devices said themselves meanwhile is later.
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Lines and bytes of the file that are done.
    line        bigint      NOT NULL DEFAULT 0,
    position    bigint      NOT NULL DEFAULT 0,
    taken       bigint      NOT NULL DEFAULT 0,
    -- Something later was known of it.
    void        bigint      NOT NULL DEFAULT 0,
    refused     bigint      NOT NULL DEFAULT 0,
    finished_at timestamptz
);

-- New registrations of an import that asked for it are not announced one by one. Everything else is: whose registration
-- ended has to hear of it.
DROP TRIGGER announce_new ON registry.registration;
CREATE TRIGGER announce_new AFTER INSERT ON registry.registration
    FOR EACH ROW WHEN (current_setting('heliograph.unannounced', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION registry.announce();

CREATE TABLE registry.api_key (
    -- The part of a key that may be known.
    id           text        PRIMARY KEY CHECK (id ~ '^[0-9a-z]{12}$'),
    -- SHA-256 of the whole key, which is 256 random bits: nothing to be guessed, so nothing to be slowed down or salted.
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    name         text        NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    -- Absent: for every app.
    app          text,
    operations   text[]      NOT NULL CHECK (cardinality(operations) > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    -- To the minute.
    last_used_at timestamptz
);

-- The service looks keys up; who makes and revokes them is the operator.
GRANT SELECT, UPDATE (last_used_at) ON registry.api_key TO heliograph_token_registry;
