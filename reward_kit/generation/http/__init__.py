# SPDX-License-Identifier: Apache-2.0
"""Models over HTTP: clients of chat and of numbers, and what an endpoint's refusal means."""
