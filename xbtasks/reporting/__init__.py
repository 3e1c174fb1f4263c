"""What people and programs read of a run: one file per form, each a function of the result."""
