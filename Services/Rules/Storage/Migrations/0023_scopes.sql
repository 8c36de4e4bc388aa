-- A waiting update of a live surface keeps the scope of its tokens.
ALTER TABLE rules.saying ADD COLUMN scope text;
