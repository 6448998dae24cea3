# SPDX-License-Identifier: Apache-2.0
"""The backends `docker` and `podman`: one container per sandbox."""
