"""Telling others over HTTPS that a task is over: where to, signed with what, and how without being led astray."""
