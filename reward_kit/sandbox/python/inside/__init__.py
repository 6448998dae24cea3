# SPDX-License-Identifier: Apache-2.0
"""What runs in the sandboxed process itself, beside the code under test or its tests."""
