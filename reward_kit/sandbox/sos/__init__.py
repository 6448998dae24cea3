# SPDX-License-Identifier: Apache-2.0
"""Sandboxes on another machine: client and server of the SoS protocol."""
