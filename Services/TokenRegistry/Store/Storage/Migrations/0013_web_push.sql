-- Web Push subscriptions of browsers (decision 136). The release before this one works on: it writes no row of the
-- provider, and it leaves the new column alone.
--
-- It cannot read such a row, and skips it. Give an app its Web Push key when no process of the former one runs any more.

-- Not validated: every row has kept the narrower check.
ALTER TABLE registry.registration
    DROP CONSTRAINT registration_provider_check,
    ADD CONSTRAINT registration_provider_check CHECK (provider IN ('apns', 'fcm', 'webpush')) NOT VALID,
    -- When the browser lets a subscription expire. No part of the token: a browser may extend a subscription.
    ADD COLUMN expires_at timestamptz;
