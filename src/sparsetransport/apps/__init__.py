"""What the package can do, on real problems."""
