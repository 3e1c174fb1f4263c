"""The simulated accelerator host (SPEC 8): a private engine, simulated drivers and a sample checkout."""
