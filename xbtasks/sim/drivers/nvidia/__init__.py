"""The simulated NVIDIA driver: its cards, what the node answers for them, and the libraries in C."""
