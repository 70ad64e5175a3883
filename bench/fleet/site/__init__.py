"""The project as it is, with one route more: a poll that reads the row each time."""
