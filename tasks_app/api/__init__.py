"""The wire: what docs/protocol.md says, as views."""
