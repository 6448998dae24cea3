"""What several rewards share: finding an answer in a text, reading it, comparing it."""
