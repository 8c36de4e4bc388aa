-- A registration token stays as a fallback for 30 days when its installation comes to be addressed by a FID, a FID is
-- suspected before it ends, and a version of an app whose FIDs are refused is addressed by its tokens. The release before this
-- one sends to a fallback as to any registration token beside a FID, which is not at all.

ALTER TABLE registry.registration
    -- Of an active registration token that its installation no longer names: until when it stands in for the FID.
    ADD COLUMN fallback_until timestamptz,
    -- Of a FID: when a provider refused it and took a registration token of the same installation, the first time in a day.
    ADD COLUMN suspected_at timestamptz;

CREATE INDEX registration_suspected ON registry.registration (app, suspected_at) WHERE suspected_at IS NOT NULL;
CREATE INDEX registration_fid ON registry.registration (app) WHERE state = 'active' AND kind = 'fid';

-- The versions of apps whose FIDs are not used.
CREATE TABLE registry.fid_halt (
    app         text        NOT NULL,
    -- Empty: registrations without a version.
    app_version text        NOT NULL,
    halted_at   timestamptz NOT NULL,
    -- FIDs are tried again from then on.
    until       timestamptz NOT NULL,
    -- People whose FIDs were refused within a day, of so many FIDs at least.
    suspected   bigint      NOT NULL,
    PRIMARY KEY (app, app_version)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON registry.fid_halt TO heliograph_token_registry;

-- A fallback ends with the FID that it stands in for, when the user leaves the FID or loses it. It stays where a provider's
-- word ended the FID, and while the installation has another FID.
CREATE FUNCTION registry.end_fallbacks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry.registration r
    SET state = 'signed-out', state_reason = 'its user left the FID', state_changed_at = statement_timestamp(),
        ended_at = coalesce(NEW.ended_at, NEW.registered_at)
    WHERE r.app = OLD.app AND r.installation = OLD.installation AND r.user_id = OLD.user_id
        AND r.state = 'active' AND r.fallback_until IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM registry.registration f
            WHERE f.app = r.app AND f.installation = r.installation AND f.user_id = r.user_id
                AND f.state = 'active' AND f.kind = 'fid' AND f.device_id <> OLD.device_id);
    RETURN NULL;
END $$;

CREATE TRIGGER end_fallbacks AFTER UPDATE ON registry.registration
    FOR EACH ROW WHEN (
        OLD.kind = 'fid' AND OLD.installation IS NOT NULL AND NEW.state <> 'erased'
        AND (NEW.user_id <> OLD.user_id OR NEW.installation IS DISTINCT FROM OLD.installation
            OR NEW.state = 'signed-out' AND OLD.state <> 'signed-out'
            -- A sign-out of what a provider had ended is kept with its moment alone.
            OR NEW.state = 'invalidated' AND OLD.state = 'invalidated' AND NEW.ended_at IS DISTINCT FROM OLD.ended_at))
    EXECUTE FUNCTION registry.end_fallbacks();
