"""What git knows of an operator checkout: what a branch changed, and which stages that touches."""
