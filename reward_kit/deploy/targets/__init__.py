# SPDX-License-Identifier: Apache-2.0
"""Where a reward can be deployed to. A target says what there is to do, as data; it does nothing itself."""
