"""An operator checkout: its Dockerfile, the builder stages in it, and the files that they read."""
