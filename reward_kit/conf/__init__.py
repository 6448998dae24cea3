"""Hydra configuration groups that ship with the package."""
