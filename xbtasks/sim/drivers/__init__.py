"""Simulated drivers: the cards of the simulated host, who uses them, and the vendors' libraries for them."""
