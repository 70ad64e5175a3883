"""From a commit in Postgres to the requests that wait for it: listener, bridge, hub."""
