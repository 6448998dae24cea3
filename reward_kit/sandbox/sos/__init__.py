"""Sandboxes on another machine: client and server of the SoS protocol."""
