-- Waits for the claims under way and lets no other begin until the policy is committed: whoever claims later sees it.
LOCK TABLE holdfast.lane IN EXCLUSIVE MODE
