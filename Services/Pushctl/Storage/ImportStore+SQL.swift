import Postgres

extension ImportStore {
    static let staging: SQL = """
        CREATE TEMPORARY TABLE IF NOT EXISTS import_line (
            wave int4 NOT NULL, device_id uuid NOT NULL, app text NOT NULL, user_id text NOT NULL, provider text NOT NULL,
            environment text NOT NULL, token text NOT NULL, moved_token text, kind text NOT NULL,
            installation text, scope text, topic text, platform text, locale text, time_zone text, app_version text, at timestamptz NOT NULL
        ) ON COMMIT DELETE ROWS
        """

    /// The same lock names, in the same order, as in the registry.
    static let advisoryLocks: SQL = """
        SELECT pg_advisory_xact_lock(key) FROM (
            SELECT DISTINCT hashtextextended(name, 0) AS key FROM (
                SELECT 'user ' || app || ' ' || user_id AS name FROM pg_temp.import_line
                UNION ALL
                SELECT 'installation ' || app || ' ' || installation FROM pg_temp.import_line
                WHERE installation IS NOT NULL
            ) AS names
            ORDER BY key
        ) AS keys
        """

    static func upsert(_ wave: Int) -> SQL {
        """
        INSERT INTO registry.registration AS r
            (device_id, app, user_id, provider, environment, token, kind, installation, scope, topic, platform,
            locale, time_zone, app_version, registered_at, state_changed_at)
        SELECT coalesce(s.successor, c.device_id), c.app, c.user_id, c.provider,
            CASE WHEN s.successor IS NULL THEN c.environment WHEN c.environment = 'production' THEN 'development'
                ELSE 'production' END,
            CASE WHEN s.successor IS NULL THEN c.token ELSE coalesce(c.moved_token, c.token) END,
            c.kind, c.installation, c.scope, c.topic, c.platform, c.locale, c.time_zone, c.app_version, t.at,
            statement_timestamp()
        FROM pg_temp.import_line c
        CROSS JOIN LATERAL (SELECT least(c.at, statement_timestamp()) AS at) AS t
        LEFT JOIN registry.erasure e ON e.app = c.app AND e.user_id = c.user_id
        LEFT JOIN registry.registration s
            ON s.device_id = c.device_id AND s.state = 'replaced' AND s.successor IS NOT NULL
        WHERE c.wave = \(wave) AND (e.erased_at IS NULL OR t.at > e.erased_at)
        ORDER BY 1
        ON CONFLICT (device_id) DO UPDATE SET
            user_id = excluded.user_id, token = excluded.token, kind = excluded.kind,
            installation = excluded.installation, scope = excluded.scope, topic = excluded.topic,
            platform = excluded.platform, locale = excluded.locale, time_zone = excluded.time_zone, app_version = excluded.app_version,
            registered_at = excluded.registered_at, stale_since = NULL, ended_at = NULL,
            successor = NULL, fallback_until = NULL, state = 'active', state_reason = NULL,
            state_changed_at = CASE WHEN r.state = 'active' AND r.user_id = excluded.user_id
                THEN r.state_changed_at ELSE excluded.state_changed_at END
        WHERE (excluded.registered_at > r.registered_at
                OR excluded.registered_at = r.registered_at AND excluded.user_id = r.user_id)
            AND (r.state = 'active' OR excluded.registered_at > coalesce(r.ended_at, r.state_changed_at)
                OR excluded.user_id <> r.user_id AND r.state NOT IN ('invalidated', 'replaced'))
        """
    }

    static func replacement(_ wave: Int) -> SQL {
        """
        WITH ranked AS MATERIALIZED (
            SELECT a.device_id, a.user_id, a.registered_at,
                a.user_id = first_value(a.user_id) OVER installation AS is_owners,
                row_number() OVER slot AS n,
                max(a.registered_at) OVER slot AS replaced_at, max(a.registered_at) OVER installation AS taken_at
            FROM (
                SELECT DISTINCT app, installation FROM pg_temp.import_line
                WHERE wave = \(wave) AND installation IS NOT NULL
            ) AS i
            JOIN registry.registration a ON a.app = i.app AND a.installation = i.installation AND a.state = 'active'
            WINDOW installation AS (PARTITION BY a.app, a.installation ORDER BY a.registered_at DESC, a.device_id),
                slot AS (
                    PARTITION BY a.app, a.installation, a.kind, a.scope ORDER BY a.registered_at DESC, a.device_id)
        )
        UPDATE registry.registration r SET
            state = CASE WHEN s.is_owners THEN 'replaced' ELSE 'signed-out' END,
            state_reason = CASE WHEN s.is_owners THEN 'the token changed' ELSE 'another user signed in' END,
            ended_at = CASE WHEN s.is_owners THEN s.replaced_at ELSE s.taken_at END,
            state_changed_at = statement_timestamp()
        FROM ranked s
        WHERE r.device_id = s.device_id AND (NOT s.is_owners OR s.n > 1) AND r.state = 'active'
            AND r.user_id = s.user_id AND r.registered_at = s.registered_at
        """
    }

    static func eviction(_ wave: Int, beyond limit: Int) -> SQL {
        """
        WITH ranked AS MATERIALIZED (
            SELECT a.device_id, a.user_id, a.registered_at, row_number() OVER (
                PARTITION BY a.app, a.user_id ORDER BY a.registered_at DESC, a.device_id) AS n
            FROM (SELECT DISTINCT app, user_id FROM pg_temp.import_line WHERE wave = \(wave)) AS u
            JOIN registry.registration a ON a.app = u.app AND a.user_id = u.user_id AND a.state = 'active'
        )
        UPDATE registry.registration r
        SET state = 'evicted', state_reason = 'too many devices', state_changed_at = statement_timestamp(),
            ended_at = r.registered_at
        FROM ranked s
        WHERE r.device_id = s.device_id AND s.n > \(limit) AND r.state = 'active'
            AND r.user_id = s.user_id AND r.registered_at = s.registered_at
        """
    }
}
