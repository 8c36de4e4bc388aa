-- events-api checks the API keys of rules, and shows publishers the decisions about their events.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'heliograph_events_api') THEN
        CREATE ROLE heliograph_events_api NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

GRANT USAGE ON SCHEMA rules TO heliograph_events_api;
GRANT SELECT ON rules.migration TO heliograph_events_api;
GRANT SELECT, UPDATE (last_used_at) ON rules.api_key TO heliograph_events_api;
GRANT SELECT ON rules.event, rules.decision, rules.outcome, rules.receipt TO heliograph_events_api;
-- The columns without texts of notifications and events.
GRANT SELECT (notification, read_at) ON rules.inbox TO heliograph_events_api;
GRANT SELECT (notification, due_at, leaving) ON rules.held TO heliograph_events_api;
GRANT SELECT (event, rule, told, decided, due_at, named, circles) ON rules.crowd TO heliograph_events_api;
GRANT SELECT (app, circle, user_id, has_left) ON rules.member TO heliograph_events_api;
