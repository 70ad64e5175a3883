"""Claiming fairly: whose turn it is, what the limits leave room for, and the claim itself."""
