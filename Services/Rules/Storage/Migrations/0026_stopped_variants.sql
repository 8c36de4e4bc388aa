-- Variants of rules that are stopped because more of their users switch notifications off or uninstall the app.

CREATE TABLE rules.stopped_variant (
    app text NOT NULL,
    -- The name of the variant's own rule, such as tip-short.
    rule text NOT NULL,
    -- Users of events that arrive from then on get the first variant.
    stopped_at timestamptz NOT NULL,
    -- switched-off or uninstalled.
    harm text NOT NULL,
    PRIMARY KEY (app, rule)
);
GRANT SELECT, INSERT ON rules.stopped_variant TO heliograph_rules;
