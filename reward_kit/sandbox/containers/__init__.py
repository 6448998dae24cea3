"""The backends `docker` and `podman`: one container per sandbox."""
