"""The reward library: one subject a module, each function decorated with `@reward_function`."""
