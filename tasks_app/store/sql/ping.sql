-- ping: the database answers.
SELECT 1
