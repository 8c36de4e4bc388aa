-- Live surfaces that end because their start is revoked.

-- Whether the event starts the live surface of its item. Such items are stored for all apps.
ALTER TABLE rules.event_item ADD COLUMN starts_surface boolean NOT NULL DEFAULT false;
CREATE INDEX event_item_start ON rules.event_item (app, item, occurred_at) WHERE starts_surface;

-- Whether the row follows from the revocation of a surface's start. Its item is the surface, and until_at the time of the
-- start. It revokes later events about the item too, until the next start.
ALTER TABLE rules.revocation ADD COLUMN is_of_surface boolean NOT NULL DEFAULT false;
