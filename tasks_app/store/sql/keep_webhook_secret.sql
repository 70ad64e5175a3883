-- keep_webhook_secret: an owner has this secret; the one before it, if any, goes on beside it for a while. Not unless asked to replace.
INSERT INTO tasks_app_webhooksecret AS kept (owner, salt, proof, made_at)
VALUES (%(owner)s, %(salt)s, %(proof)s, clock_timestamp())
ON CONFLICT (owner) DO UPDATE SET
    previous_salt = kept.salt, previous_proof = kept.proof,
    salt = excluded.salt, proof = excluded.proof, made_at = excluded.made_at
WHERE %(replace)s
RETURNING made_at
