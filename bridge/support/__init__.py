"""Help every stage: the boundary for errors, and functions that Dynamo has not seen."""
