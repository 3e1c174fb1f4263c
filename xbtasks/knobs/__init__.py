"""The settings: the table of knobs as data, the parsers of their values, files, and their resolution."""
