"""What runs in the sandboxed process itself, beside the code under test or its tests."""
