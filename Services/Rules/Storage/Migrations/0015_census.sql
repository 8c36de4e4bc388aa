-- The census: the number of notifications in each state, and the notifications that are missing. Nothing here has a row
-- for each notification, except for a missing one.

-- The reports of the processes of all stages.
CREATE TABLE rules.census_report (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service text NOT NULL,
    process uuid NOT NULL,
    received_at timestamptz NOT NULL,
    -- By the clock of the process: the end of the report's interval, and the arrival of the oldest unsettled delivery.
    sent_at timestamptz NOT NULL,
    oldest_at timestamptz NOT NULL,
    is_final boolean NOT NULL,
    -- Shortened notification ids of 8 bytes. Each of `retried` is followed by the milliseconds of its return.
    settled bytea NOT NULL,
    retried bytea NOT NULL,
    dead_lettered bytea NOT NULL
);
CREATE INDEX census_report_received_at ON rules.census_report (received_at);

-- The intervals that were counted, by the time of decision. `-infinity` has the states that only other tables know.
CREATE TABLE rules.census_interval (
    start_at timestamptz PRIMARY KEY,
    -- When it is counted again.
    due_at timestamptz NOT NULL,
    -- The start of the stages' reports that may still be needed; null if none is.
    reports_from timestamptz,
    -- Feedback has taken the reports against tokens up to this time.
    evidence_until timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX census_interval_due_at ON rules.census_interval (due_at);

CREATE TABLE rules.census_count (
    start_at timestamptz NOT NULL,
    app text NOT NULL,
    state text NOT NULL,
    number bigint NOT NULL,
    oldest_at timestamptz,
    PRIMARY KEY (start_at, app, state)
);

-- The missing notifications.
CREATE TABLE rules.census_gap (
    notification uuid PRIMARY KEY,
    start_at timestamptz NOT NULL,
    app text NOT NULL,
    state text NOT NULL,
    -- The event's id, for pushctl explain.
    event text NOT NULL,
    decided_at timestamptz NOT NULL,
    found_at timestamptz NOT NULL
);
CREATE INDEX census_gap_start_at ON rules.census_gap (start_at);

-- The process that counts.
CREATE TABLE rules.census_lease (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    process uuid NOT NULL,
    renewed_at timestamptz NOT NULL,
    -- The end of its last complete round.
    counted_at timestamptz
);

GRANT SELECT, INSERT, DELETE ON rules.census_report TO heliograph_rules;
GRANT SELECT, INSERT, UPDATE, DELETE
    ON rules.census_interval, rules.census_count, rules.census_gap, rules.census_lease TO heliograph_rules;
