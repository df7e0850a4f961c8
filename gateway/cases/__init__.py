"""Saved cases: arguments of a tool with what is expected of the result, run when asked or on a
schedule."""
