-- The registry's one table: every device a user has, or had. A row is never deleted by a provider's word or a
-- sign-out: its state says why nothing goes to it, and a later registration revives it.

DO $$ BEGIN CREATE ROLE heliograph_token_registry NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;

CREATE TABLE registry.registration (
    -- UUIDv5 of app, provider, environment and token: one owner for a token follows from the primary key, and a
    -- changed token is another registration.
    device_id        uuid        PRIMARY KEY,
    app              text        NOT NULL,
    user_id          text        NOT NULL CHECK (length(user_id) BETWEEN 1 AND 256),
    provider         text        NOT NULL CHECK (provider IN ('apns', 'fcm')),
    environment      text        NOT NULL CHECK (environment IN ('production', 'development')),
    token            text        NOT NULL CHECK (octet_length(token) BETWEEN 1 AND 4096),
    -- Bumped by every registration, changed or not: what a provider's invalidation time is compared with.
    registered_at    timestamptz NOT NULL,
    state            text        NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'signed-out', 'invalidated', 'replaced', 'evicted')),
    state_reason     text,
    state_changed_at timestamptz NOT NULL,
    CHECK ((state = 'active') = (state_reason IS NULL))
) WITH (fillfactor = 85);

-- The send path: who has which devices. Partial, so that what is inactive costs it nothing.
CREATE INDEX registration_of_user ON registry.registration (app, user_id) WHERE state = 'active';

GRANT USAGE ON SCHEMA registry TO heliograph_token_registry;
GRANT SELECT, INSERT, UPDATE ON registry.registration TO heliograph_token_registry;
GRANT SELECT ON registry.migration TO heliograph_token_registry;
