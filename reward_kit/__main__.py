# SPDX-License-Identifier: Apache-2.0
"""`python -m reward_kit` is the command line."""

from reward_kit.cli import main

if __name__ == "__main__":
    main()
