-- How many a crowd may still be told to, for whoever asks how far it has come: how many the event named, and which groups it
-- is told to. Unknown of those that were under way before.
ALTER TABLE rules.crowd ADD COLUMN named integer, ADD COLUMN circles text[];
