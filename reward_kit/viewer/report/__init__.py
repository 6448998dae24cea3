# SPDX-License-Identifier: Apache-2.0
"""`reward-kit report`: runs as one HTML file that needs nothing else, to be sent to somebody."""

import reward_kit.analysis  # noqa: F401 - says which extra is missing, before a module here needs it
