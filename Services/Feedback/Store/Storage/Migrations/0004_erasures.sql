-- Registrations whose users asked to be forgotten. What is said about them later, by pushes that were under way, is not
-- kept. The device's id follows from the token and leads to nobody; it is forgotten in its turn.

CREATE TABLE feedback.erasure (
    device_id uuid PRIMARY KEY,
    -- Evidence about a registration of up to then is gone; a later one may be somebody else's.
    revokes   timestamptz NOT NULL,
    erased_at timestamptz NOT NULL,
    noted_at  timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX erasure_noted_at ON feedback.erasure (noted_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON feedback.erasure TO heliograph_feedback;
