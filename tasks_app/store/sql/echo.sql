-- echo: whoever listens to `channel` hears of it, and that everything committed before has been heard.
SELECT pg_notify(%(channel)s, '')
