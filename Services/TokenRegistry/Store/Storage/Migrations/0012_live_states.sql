-- Phones that report the token of their Live Activity late get its newest state.

-- The newest state of a live surface for one user with a phone that has not reported its token. A row stays for 12 hours.
CREATE TABLE registry.live_state (
    app          text        NOT NULL,
    user_id      text        NOT NULL,
    -- The scope of the token.
    scope        text        NOT NULL,
    -- The user's notification about the state, and its message for this user only.
    notification uuid        NOT NULL,
    message      text        NOT NULL,
    -- The time of the state in Unix seconds, by which devices order states.
    at           bigint      NOT NULL,
    -- Whether the state ends the surface.
    is_end       boolean     NOT NULL,
    stored_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app, user_id, scope)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX live_state_stored_at ON registry.live_state (stored_at);

-- Tokens of Live Activities that were reported. A worker sends each the newest state, if there is one.
CREATE TABLE registry.reported_activity (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app       text        NOT NULL,
    user_id   text        NOT NULL,
    scope     text        NOT NULL,
    device_id uuid        NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION registry.note_activity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO registry.reported_activity (app, user_id, scope, device_id)
    VALUES (NEW.app, NEW.user_id, NEW.scope, NEW.device_id);
    RETURN NULL;
END $$;

CREATE TRIGGER note_new_activity AFTER INSERT ON registry.registration
    FOR EACH ROW WHEN (NEW.kind = 'live-activity' AND NEW.scope IS NOT NULL AND NEW.state = 'active')
    EXECUTE FUNCTION registry.note_activity();
CREATE TRIGGER note_changed_activity AFTER UPDATE ON registry.registration
    FOR EACH ROW WHEN (
        NEW.kind = 'live-activity' AND NEW.scope IS NOT NULL AND NEW.state = 'active'
            AND (OLD.state, OLD.user_id, OLD.kind, OLD.scope) IS DISTINCT FROM (NEW.state, NEW.user_id, NEW.kind, NEW.scope))
    EXECUTE FUNCTION registry.note_activity();

-- The worker locks the rows that it takes.
GRANT SELECT, INSERT, UPDATE, DELETE ON registry.live_state, registry.reported_activity TO heliograph_token_registry;
