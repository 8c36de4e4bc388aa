-- A registration learns its kind, its installation and what is known about the device; why it ended is kept with the
-- moment that the end is about; and every change leaves through an outbox. The release before this one works on: what it
-- does not write has a meaning when it is absent.

ALTER TABLE registry.registration
    -- RegistrationKind; absent: the provider's usual one.
    ADD COLUMN kind         text,
    -- One app on one device, as the app names itself; absent: the token stands for itself.
    ADD COLUMN installation text CHECK (octet_length(installation) BETWEEN 1 AND 128),
    -- Tells apart what one installation may have several of, such as the id of a Live Activity.
    ADD COLUMN scope        text CHECK (octet_length(scope) BETWEEN 1 AND 128),
    -- The `apns-topic`, where it does not follow from the app and the push type.
    ADD COLUMN topic        text CHECK (octet_length(topic) BETWEEN 1 AND 255),
    ADD COLUMN locale       text CHECK (octet_length(locale) BETWEEN 1 AND 64),
    ADD COLUMN time_zone    text CHECK (octet_length(time_zone) BETWEEN 1 AND 64),
    ADD COLUMN app_version  text CHECK (octet_length(app_version) BETWEEN 1 AND 64),
    -- Since when it has been known not to be seen any more; pushes go to it all the same.
    ADD COLUMN stale_since  timestamptz,
    -- The moment that the end of an inactive registration is about: one made until then does not revive it. Absent: the
    -- moment at which it ended.
    ADD COLUMN ended_at     timestamptz,
    -- Where a registration was moved that lives in the other environment: who says the wrong one again means that one.
    ADD COLUMN successor    uuid,
    ALTER COLUMN token DROP NOT NULL,
    DROP CONSTRAINT registration_state_check,
    ADD CONSTRAINT registration_state_check CHECK (
        state IN ('active', 'signed-out', 'invalidated', 'replaced', 'evicted', 'stale', 'erased')),
    ADD CONSTRAINT registration_token_kept CHECK ((state = 'erased') = (token IS NULL));

CREATE INDEX registration_of_installation ON registry.registration (app, installation)
    WHERE state = 'active' AND installation IS NOT NULL;
-- Operators and erasure look at the past too; a send does not.
CREATE INDEX registration_past_of_user ON registry.registration (app, user_id) WHERE state <> 'active';

-- Who asked to be forgotten, and when: a registration from before that, delivered late, is void.
CREATE TABLE registry.erasure (
    app       text        NOT NULL,
    user_id   text        NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (app, user_id)
);

-- What happened and was not published yet. A row leaves when the broker has confirmed it. No token, ever.
CREATE TABLE registry.outbox (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    past         text        NOT NULL,
    app          text        NOT NULL,
    user_id      text        NOT NULL,
    -- Absent: about everything of the user.
    device_id    uuid,
    provider     text,
    environment  text,
    kind         text,
    installation text,
    active       boolean,
    reason       text,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- One row: whoever holds it publishes, so that what happened to a device leaves in order.
CREATE TABLE registry.relay (id boolean PRIMARY KEY DEFAULT true CHECK (id));
INSERT INTO registry.relay DEFAULT VALUES;

-- One row: how far the sweep for what was not seen any more has come in the order of the primary key.
CREATE TABLE registry.sweep (
    id       boolean PRIMARY KEY DEFAULT true CHECK (id),
    position uuid    NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
INSERT INTO registry.sweep DEFAULT VALUES;

-- The table announces its own changes, whoever makes them: none can be silent, and none is announced that was rolled
-- back. Rows of one device come in the order of its changes, since the number is drawn while its row is locked.
CREATE FUNCTION registry.announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'active' AND NEW.user_id <> OLD.user_id THEN
        INSERT INTO registry.outbox
            (past, app, user_id, device_id, provider, environment, kind, installation, active, reason)
        VALUES ('replaced', OLD.app, OLD.user_id, OLD.device_id, OLD.provider, OLD.environment, OLD.kind,
            OLD.installation, false, 'another user registered the token');
    END IF;
    INSERT INTO registry.outbox
        (past, app, user_id, device_id, provider, environment, kind, installation, active, reason)
    SELECT past, NEW.app, NEW.user_id, NEW.device_id, NEW.provider, NEW.environment, NEW.kind,
        NEW.installation, NEW.state = 'active', reason
    FROM (
        SELECT CASE
            WHEN TG_OP = 'UPDATE' AND NEW.state = 'active' AND OLD.state = 'active'
                AND OLD.user_id = NEW.user_id AND NEW.stale_since IS NOT NULL AND OLD.stale_since IS NULL THEN 'stale'
            WHEN NEW.state = 'active' THEN 'registered'
            WHEN NEW.state = 'erased' THEN 'erased'
            WHEN TG_OP = 'INSERT' OR OLD.state <> 'active' THEN NULL
            WHEN NEW.state = 'invalidated' THEN 'deactivated'
            WHEN NEW.state = 'replaced' AND NEW.state_reason = 'environment corrected' THEN 'corrected'
            ELSE NEW.state END AS past,
            CASE WHEN NEW.state = 'active' AND NEW.stale_since IS NOT NULL THEN 'not seen for a month'
                WHEN NEW.state NOT IN ('active', 'erased') THEN NEW.state_reason END AS reason
    ) AS event
    WHERE past IS NOT NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER announce_new AFTER INSERT ON registry.registration
    FOR EACH ROW EXECUTE FUNCTION registry.announce();
-- A registration that only says the same again is no change. A flag taken back is told by what takes it back.
CREATE TRIGGER announce_change AFTER UPDATE ON registry.registration
    FOR EACH ROW WHEN (
        (OLD.state, OLD.user_id, OLD.kind, OLD.installation, OLD.scope, OLD.topic, OLD.locale, OLD.time_zone,
            OLD.app_version, OLD.stale_since)
        IS DISTINCT FROM
        (NEW.state, NEW.user_id, NEW.kind, NEW.installation, NEW.scope, NEW.topic, NEW.locale, NEW.time_zone,
            NEW.app_version, NEW.stale_since))
    EXECUTE FUNCTION registry.announce();

GRANT SELECT, INSERT, UPDATE ON registry.erasure TO heliograph_token_registry;
GRANT SELECT, INSERT, DELETE ON registry.outbox TO heliograph_token_registry;
GRANT SELECT, UPDATE ON registry.relay, registry.sweep TO heliograph_token_registry;
