"""Help every stage: the boundary for errors, what a compilation tells its recorder, and the package's version.

In: a step that may fail.  Out: its result, or a counted refusal.  May import the adapter, reports and reasons.
"""
