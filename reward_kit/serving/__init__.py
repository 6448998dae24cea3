# SPDX-License-Identifier: Apache-2.0
"""A reward as an HTTP service: who may call, how much at a time, and in which words."""
