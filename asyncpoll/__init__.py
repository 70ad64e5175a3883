"""The project around `tasks_app`: how it is configured, served and talked to."""
