"""A month at a ferry company that does not exist, for a demo's database and no other."""
