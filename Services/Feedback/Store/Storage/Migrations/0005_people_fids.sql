-- Evidence knows whose established registration it is about, and FIDs have findings of their own. The release before this one
-- writes evidence without an owner, which counts toward no storm.

ALTER TABLE feedback.evidence
    DROP CONSTRAINT evidence_finding_check,
    ADD CONSTRAINT evidence_finding_check CHECK (finding IN (
        'gone', 'suspect', 'misplaced',
        'fid-gone',           -- a FID that the provider does not know, and no registration token helped
        'fid-contradicted')), -- a FID that the provider does not know on a device whose registration token it took
    -- A number for the user. Absent: the registration was new, or its sender is too old to tell.
    ADD COLUMN owner bigint;
