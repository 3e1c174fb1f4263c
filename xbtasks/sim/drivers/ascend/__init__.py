"""The simulated Ascend driver and toolkit: NPUs, what the node answers for them, libraries in C."""
