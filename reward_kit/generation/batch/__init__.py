# SPDX-License-Identifier: Apache-2.0
"""Batch endpoints: files of requests, answered within a day at a lower price."""
