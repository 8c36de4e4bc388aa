-- Lists of any length: no statement's work grows with one. The release before this one works on: what it does not write has
-- a meaning when it is absent, and it deletes a finished campaign's list at once, as before.

ALTER TABLE registry.campaign_part
    -- How many users came with the part, and every hundredth that it names in their order: what the list is divided into
    -- ranges by.
    ADD COLUMN users  bigint NOT NULL DEFAULT 0,
    ADD COLUMN sample text[] NOT NULL DEFAULT '{}';
GRANT UPDATE ON registry.campaign_part TO heliograph_token_registry;

-- On what an app that is registered with FCM runs, where it was said: Google forgets a token of Android's that was not seen for 270
-- days, and none of an iPhone's. Absent: Android, as for the release before this one. APNs' need none.
ALTER TABLE registry.registration ADD COLUMN platform text CHECK (platform IN ('ios', 'android'));

-- A notification that is delivered again gives its ranges' cursors out again. Which copy's turn it is, so that no other copy
-- that comes back takes the turn for its own.
ALTER TABLE registry.campaign_range
    ADD COLUMN copies bigint NOT NULL DEFAULT 0,
    ADD COLUMN copy   bigint;
