"""From row to outcome: claims tasks, runs them, commits what they said, and keeps their leases meanwhile."""
