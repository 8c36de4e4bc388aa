-- What is over is found by when it was over.
CREATE INDEX member_left_at ON rules.member (at) WHERE has_left;
CREATE INDEX report_at ON rules.report (at);
CREATE INDEX digest_idle ON rules.digest (planned_at) WHERE close_at IS NULL;
