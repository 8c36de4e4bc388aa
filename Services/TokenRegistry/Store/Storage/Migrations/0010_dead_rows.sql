-- A row or cursor that cannot be handled is set aside with a reason and stops no other. The release before this one works on:
-- it knows nothing of these columns, and its trigger writes neither.

ALTER TABLE registry.outbox
    -- When the relay set the row aside, and a word that says why; absent: it is to be published.
    ADD COLUMN dead_at     timestamptz,
    ADD COLUMN dead_reason text;
GRANT UPDATE (dead_at, dead_reason) ON registry.outbox TO heliograph_token_registry;

ALTER TABLE registry.campaign_range
    -- When the range's cursor was dead-lettered, and a word that says why; absent: the range goes on.
    ADD COLUMN dead_at     timestamptz,
    ADD COLUMN dead_reason text;

-- A user's ended registrations beyond `keep`, the oldest first. As before, the service may delete no registration of its own
-- accord; this function leaves the latest hundred of each user, whatever is asked, and what was moved to its environment.
CREATE FUNCTION registry.forget_surplus(apps text[], users text[], keep integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH surplus AS (
        SELECT s.device_id
        FROM unnest(apps, users) AS u (app, user_id)
        CROSS JOIN LATERAL (
            SELECT r.device_id, r.successor FROM registry.registration r
            WHERE r.app = u.app AND r.user_id = u.user_id AND r.state <> 'active' AND r.state <> 'erased'
            ORDER BY r.state_changed_at DESC, r.device_id OFFSET greatest(keep, 100)
        ) AS s
        WHERE s.successor IS NULL
    ), gone AS (
        DELETE FROM registry.registration r USING surplus s
        WHERE r.device_id = s.device_id AND r.state NOT IN ('active', 'erased')
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;
REVOKE EXECUTE ON FUNCTION registry.forget_surplus FROM PUBLIC;
GRANT EXECUTE ON FUNCTION registry.forget_surplus TO heliograph_token_registry;
