-- Servers and operators have keys of their own.

CREATE TABLE rules.api_key (
    -- The part of a key that may be known.
    id text PRIMARY KEY CHECK (id ~ '^[0-9a-z]{12}$'),
    -- SHA-256 of the whole key, which is 256 random bits: nothing to be guessed, so nothing to be slowed down or salted.
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    -- Absent: for every app.
    app text,
    operations text[] NOT NULL CHECK (cardinality(operations) > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz,
    -- To the minute.
    last_used_at timestamptz
);

-- The service looks keys up; who makes and revokes them is the operator.
GRANT SELECT, UPDATE (last_used_at) ON rules.api_key TO heliograph_rules;
