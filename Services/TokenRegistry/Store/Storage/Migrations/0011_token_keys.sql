-- Device tokens can be stored encrypted. A row keeps how far they were rewritten under another key.
--
-- The release before this one sends to an encrypted token as if it were one: give this release its keys when no process of the
-- former one runs any more.

-- Encrypted, the longest token has 5,600 bytes. Not validated: every row has kept the narrower bound.
ALTER TABLE registry.registration
    DROP CONSTRAINT registration_token_check,
    ADD CONSTRAINT registration_token_check CHECK (octet_length(token) BETWEEN 1 AND 8192) NOT VALID;

-- One row: how far the walk has come in the order of the primary key.
CREATE TABLE registry.token_rewrite (
    id          boolean     PRIMARY KEY DEFAULT true CHECK (id),
    -- The key that tokens are rewritten with, or `plain`; absent: no process has had keys.
    key         text,
    -- A constant, encrypted with that key: shows whether another process has the same one.
    proof       text,
    position    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- Of this walk: how many tokens it rewrote, and how many it left, by the id of their key.
    rewritten   bigint      NOT NULL DEFAULT 0,
    counts      jsonb       NOT NULL DEFAULT '{}',
    -- Of the last whole walk: what it left, whether it rewrote nothing, and when it ended.
    last        jsonb       NOT NULL DEFAULT '{}',
    settled     boolean     NOT NULL DEFAULT false,
    finished_at timestamptz
);
INSERT INTO registry.token_rewrite DEFAULT VALUES;
GRANT SELECT, UPDATE ON registry.token_rewrite TO heliograph_token_registry;
