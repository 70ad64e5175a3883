"""Addresses of somebody else's project, with admin sites of its own."""
