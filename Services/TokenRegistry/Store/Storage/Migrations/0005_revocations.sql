-- Where a user has lost a device, the event says so: pushes to it that are under way are sent no more. The release before
-- this one writes and publishes as before; what it publishes says less.

ALTER TABLE registry.outbox
    -- Pushes to the device from a registration of up to this moment are revoked. Absent: they may well reach the person.
    ADD COLUMN revokes timestamptz;

-- Pushes carry the moment of their registration in whole milliseconds. One that follows another's end, or takes another's
-- place, within the same millisecond would be revoked along with it: it counts from the next one.
CREATE FUNCTION registry.set_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.registered_at := date_trunc('milliseconds', OLD.registered_at) + interval '1 millisecond';
    RETURN NEW;
END $$;

CREATE TRIGGER set_apart BEFORE UPDATE ON registry.registration
    FOR EACH ROW WHEN (
        NEW.state = 'active' AND (OLD.state <> 'active' OR NEW.user_id <> OLD.user_id)
        AND date_trunc('milliseconds', NEW.registered_at) <= date_trunc('milliseconds', OLD.registered_at))
    EXECUTE FUNCTION registry.set_apart();

-- Whose registration had ended already, as by eviction, loses the device all the same when they sign out or another user
-- registers it: pushes from before may be under way.
CREATE OR REPLACE FUNCTION registry.announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_taken  boolean := TG_OP = 'UPDATE' AND NEW.user_id <> OLD.user_id AND OLD.state NOT IN ('signed-out', 'erased');
    -- An installation that drops a registration still has its user.
    is_left   boolean := TG_OP = 'UPDATE' AND NEW.user_id = OLD.user_id AND NEW.state = 'signed-out'
        AND OLD.state NOT IN ('signed-out', 'erased') AND NEW.state_reason <> 'the installation dropped it';
BEGIN
    IF is_taken THEN
        INSERT INTO registry.outbox
            (past, app, user_id, device_id, provider, environment, kind, installation, active, reason, revokes)
        VALUES ('replaced', OLD.app, OLD.user_id, OLD.device_id, OLD.provider, OLD.environment, OLD.kind,
            OLD.installation, false, 'another user registered the token', OLD.registered_at);
    END IF;
    INSERT INTO registry.outbox
        (past, app, user_id, device_id, provider, environment, kind, installation, active, reason, revokes)
    SELECT past, NEW.app, NEW.user_id, NEW.device_id, NEW.provider, NEW.environment, NEW.kind,
        NEW.installation, NEW.state = 'active', reason,
        CASE WHEN past IN ('signed-out', 'erased') THEN NEW.registered_at END
    FROM (
        SELECT CASE
            WHEN TG_OP = 'UPDATE' AND NEW.state = 'active' AND OLD.state = 'active'
                AND OLD.user_id = NEW.user_id AND NEW.stale_since IS NOT NULL AND OLD.stale_since IS NULL
                -- What a correction moves onto it may be stale and described otherwise: that is told as registered.
                AND (OLD.kind, OLD.installation, OLD.scope, OLD.topic, OLD.locale, OLD.time_zone, OLD.app_version)
                IS NOT DISTINCT FROM
                (NEW.kind, NEW.installation, NEW.scope, NEW.topic, NEW.locale, NEW.time_zone, NEW.app_version)
                THEN 'stale'
            WHEN NEW.state = 'active' THEN 'registered'
            WHEN NEW.state = 'erased' THEN 'erased'
            WHEN is_left THEN 'signed-out'
            WHEN TG_OP = 'INSERT' OR OLD.state <> 'active' THEN NULL
            WHEN NEW.state = 'invalidated' THEN 'deactivated'
            WHEN NEW.state = 'replaced' AND NEW.state_reason = 'environment corrected' THEN 'corrected'
            ELSE NEW.state END AS past,
            CASE WHEN NEW.state = 'active' AND NEW.stale_since IS NOT NULL THEN 'not seen for a month'
                WHEN NEW.state NOT IN ('active', 'erased') THEN NEW.state_reason END AS reason
    ) AS event
    WHERE past IS NOT NULL;
    -- With it goes what the user had on the same installation and what ended otherwise, as when the token changed, or
    -- what was moved here from the other environment: the phone may still get pushes to that. What ended longer ago than
    -- a revocation counts is left out.
    IF is_taken OR is_left THEN
        INSERT INTO registry.outbox
            (past, app, user_id, device_id, provider, environment, kind, installation, active, reason, revokes)
        SELECT 'signed-out', p.app, p.user_id, p.device_id, p.provider, p.environment, p.kind, p.installation, false,
            'its user has left the device', p.registered_at
        FROM registry.registration p
        WHERE p.app = OLD.app AND p.user_id = OLD.user_id AND p.state <> 'active' AND p.state NOT IN ('signed-out', 'erased')
            AND p.device_id <> OLD.device_id
            AND (p.successor = OLD.device_id OR p.installation = OLD.installation)
            AND p.state_changed_at > statement_timestamp() - interval '7 days'
        ORDER BY p.device_id;
    END IF;
    RETURN NULL;
END $$;
