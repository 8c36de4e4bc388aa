-- How much came of each rule, hour by hour, counted from the log of decisions and kept when that is deleted.

CREATE TABLE rules.tally (
    -- Its first moment: that of decisions which were made in it.
    hour timestamptz NOT NULL,
    app text NOT NULL,
    rule text NOT NULL,
    -- The version of the rules.
    rule_set uuid NOT NULL,
    sent bigint NOT NULL,
    unsent bigint NOT NULL,
    accepted bigint NOT NULL,
    failed bigint NOT NULL,
    opened bigint NOT NULL,
    dismissed bigint NOT NULL,
    PRIMARY KEY (hour, app, rule, rule_set)
);

-- When each hour was counted last.
CREATE TABLE rules.tally_hour (
    hour timestamptz PRIMARY KEY,
    counted_at timestamptz NOT NULL
);

GRANT SELECT, INSERT, UPDATE, DELETE ON rules.tally, rules.tally_hour TO heliograph_rules;
