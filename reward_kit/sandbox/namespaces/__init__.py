# SPDX-License-Identifier: Apache-2.0
"""The backend `namespaces`: sandboxes made of Linux namespaces, an overlay, a control group and a filter."""
