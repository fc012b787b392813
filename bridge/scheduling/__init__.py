"""Decide what Inductor's scheduler gets: its hooks, the groups, and the steps of each group."""
