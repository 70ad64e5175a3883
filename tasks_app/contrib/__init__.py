"""Bridges to other systems that run tasks. Nothing here is imported unless a project does."""
