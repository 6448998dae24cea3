"""Small named tools that know nothing of the rest of the package."""
