-- Who was erased is remembered for a month: long enough for what was registered before and comes late. The service may still
-- delete nothing; these two functions can, and nothing but that.

-- An erasure may be about a moment long ago; it is remembered from when it was asked for.
ALTER TABLE registry.erasure ADD COLUMN noted_at timestamptz NOT NULL DEFAULT statement_timestamp();
CREATE INDEX erasure_noted_at ON registry.erasure (noted_at);

-- Registrations of erased users, of one range of the primary key. Whatever is asked, no younger ones.
CREATE FUNCTION registry.forget_erased(lower uuid, upper uuid, before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM registry.registration r
        WHERE r.device_id > lower AND r.device_id <= upper AND r.state = 'erased'
            AND r.state_changed_at < least(before, statement_timestamp() - interval '30 days')
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;

-- That they were erased. A registration of theirs goes before.
CREATE FUNCTION registry.forget_erasures(before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM registry.erasure e
        WHERE e.noted_at < least(before, statement_timestamp() - interval '30 days')
            AND NOT EXISTS (
                SELECT FROM registry.registration r
                WHERE r.app = e.app AND r.user_id = e.user_id AND r.state <> 'active' AND r.state = 'erased')
        RETURNING true
    )
    SELECT count(*) FROM gone
$$;

REVOKE EXECUTE ON FUNCTION registry.forget_erased, registry.forget_erasures FROM PUBLIC;
GRANT EXECUTE ON FUNCTION registry.forget_erased, registry.forget_erasures TO heliograph_token_registry;
