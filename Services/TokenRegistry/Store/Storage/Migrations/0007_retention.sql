-- What is over is kept for a time. As before, the service may delete no registration and no campaign of its own accord; these
-- functions can, and only what ended a month ago or longer, whatever is asked.

-- Registrations that have ended. Erased ones are registry.forget_erased's.
CREATE FUNCTION registry.forget_ended(devices uuid[]) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM registry.registration r
        WHERE r.device_id = ANY (devices) AND r.state NOT IN ('active', 'erased')
            AND greatest(r.state_changed_at, r.ended_at) < statement_timestamp() - interval '30 days'
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;

-- A campaign goes with all that tells how far it came.
ALTER TABLE registry.campaign_range DROP CONSTRAINT campaign_range_campaign_fkey,
    ADD CONSTRAINT campaign_range_campaign_fkey FOREIGN KEY (campaign) REFERENCES registry.campaign ON DELETE CASCADE;
ALTER TABLE registry.campaign_member DROP CONSTRAINT campaign_member_campaign_fkey,
    ADD CONSTRAINT campaign_member_campaign_fkey FOREIGN KEY (campaign) REFERENCES registry.campaign ON DELETE CASCADE;
ALTER TABLE registry.campaign_part DROP CONSTRAINT campaign_part_campaign_fkey,
    ADD CONSTRAINT campaign_part_campaign_fkey FOREIGN KEY (campaign) REFERENCES registry.campaign ON DELETE CASCADE;
CREATE INDEX campaign_finished_at ON registry.campaign (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX campaign_unfinished ON registry.campaign (created_at) WHERE finished_at IS NULL;

CREATE FUNCTION registry.forget_campaigns(campaigns uuid[]) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM registry.campaign c
        WHERE c.id = ANY (campaigns) AND c.finished_at < statement_timestamp() - interval '30 days'
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;

-- One row for each file that was ever brought in: read through. What names files is nothing that the service reads.
CREATE FUNCTION registry.forget_imports(before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM registry.import i
        WHERE coalesce(i.finished_at, i.started_at) < least(before, statement_timestamp() - interval '30 days')
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;

REVOKE EXECUTE ON FUNCTION registry.forget_ended, registry.forget_campaigns, registry.forget_imports FROM PUBLIC;
GRANT EXECUTE ON FUNCTION registry.forget_ended, registry.forget_campaigns, registry.forget_imports
    TO heliograph_token_registry;

-- One row: how far the look for memberships that were left has come in the order of the primary key.
CREATE TABLE registry.membership_sweep (
    id      boolean PRIMARY KEY DEFAULT true CHECK (id),
    app     text    NOT NULL DEFAULT '',
    kind    text    NOT NULL DEFAULT '',
    name    text    NOT NULL DEFAULT '',
    -- Taken out when this user is erased: the look then begins again with the group.
    user_id text    NOT NULL DEFAULT ''
);
INSERT INTO registry.membership_sweep DEFAULT VALUES;
GRANT SELECT, UPDATE ON registry.membership_sweep TO heliograph_token_registry;
