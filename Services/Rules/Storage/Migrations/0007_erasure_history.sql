-- Whoever asks for it is forgotten, and what is old goes.

-- Who asked, and when: what happened until then and is still on its way here is not about them any more. The name is a
-- digest, so that this table does not remember whom it is about.
CREATE TABLE rules.erasure (
    -- Derived from app and user.
    person uuid PRIMARY KEY,
    erased_at timestamptz NOT NULL,
    -- Absent as long as there may be something left of them.
    done_at timestamptz
);
CREATE INDEX erasure_erased_at ON rules.erasure (erased_at);
CREATE INDEX erasure_done_at ON rules.erasure (done_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON rules.erasure TO heliograph_rules;

-- What is a person's is found by the person, and what nobody refers to by those who would.
CREATE INDEX decision_user ON rules.decision (user_id);
CREATE INDEX member_user ON rules.member (app, user_id);
CREATE INDEX held_summary ON rules.held (app, user_id) WHERE kind = 'summary';
CREATE INDEX held_saying ON rules.held (saying);
CREATE INDEX inbox_saying ON rules.inbox (saying);
CREATE INDEX digest_item_notification ON rules.digest_item (notification);

-- What is old is found by its time, the oldest first. Ranges of blocks would tell less and less, as new rows take the room
-- of those that are gone; times come in their order, so that these indexes grow at one end only.
DROP INDEX rules.event_arrived_at, rules.decision_decided_at, rules.outcome_at, rules.receipt_at, rules.saying_said_at;
CREATE INDEX event_arrived_at ON rules.event (arrived_at);
CREATE INDEX decision_decided_at ON rules.decision (decided_at);
CREATE INDEX outcome_at ON rules.outcome (at);
CREATE INDEX receipt_at ON rules.receipt (at);
CREATE INDEX saying_said_at ON rules.saying (said_at);
CREATE INDEX inbox_at ON rules.inbox (at);
CREATE INDEX circle_told_at ON rules.circle (told_at);
