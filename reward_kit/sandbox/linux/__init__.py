# SPDX-License-Identifier: Apache-2.0
"""What Linux offers, by the standard library alone: what sandboxes of namespaces and isolated Python share."""
