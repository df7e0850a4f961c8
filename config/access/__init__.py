"""The page that explains who may do what, and why."""
