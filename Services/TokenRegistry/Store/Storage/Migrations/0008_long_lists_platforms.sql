-- Lists of any length: no statement goes over all users of one. The release before this one works on: what it does not write
-- has a meaning when it is absent, and it deletes a finished campaign's list at once, as before.

ALTER TABLE registry.campaign_part
    -- How many users came with the part, and every hundredth that it names in their order: what the list is divided into
    -- ranges by.
    ADD COLUMN users  bigint NOT NULL DEFAULT 0,
    ADD COLUMN sample text[] NOT NULL DEFAULT '{}';
GRANT UPDATE ON registry.campaign_part TO heliograph_token_registry;

-- On what an app that is registered with FCM runs, where it was said: Google forgets a token of Android's that was not seen for 270
-- days, and none of an iPhone's. Absent: Android, as for the release before this one. APNs' need none.
ALTER TABLE registry.registration ADD COLUMN platform text;
-- Not validated: no row has one yet, and reading all of them to see that would keep everybody waiting.
ALTER TABLE registry.registration
    ADD CONSTRAINT registration_platform_check CHECK (platform IN ('ios', 'android')) NOT VALID;

-- As in 0002, with the platform.
DROP TRIGGER announce_change ON registry.registration;
CREATE TRIGGER announce_change AFTER UPDATE ON registry.registration
    FOR EACH ROW WHEN (
        (OLD.state, OLD.user_id, OLD.kind, OLD.installation, OLD.scope, OLD.topic, OLD.platform, OLD.locale,
            OLD.time_zone, OLD.app_version, OLD.stale_since)
        IS DISTINCT FROM
        (NEW.state, NEW.user_id, NEW.kind, NEW.installation, NEW.scope, NEW.topic, NEW.platform, NEW.locale,
            NEW.time_zone, NEW.app_version, NEW.stale_since))
    EXECUTE FUNCTION registry.announce();

-- A notification that is delivered again gives its ranges' cursors out again. Which copy's turn it is, so that no other copy
-- that comes back takes the turn for its own.
ALTER TABLE registry.campaign_range
    ADD COLUMN copies bigint NOT NULL DEFAULT 0,
    ADD COLUMN copy   bigint;
