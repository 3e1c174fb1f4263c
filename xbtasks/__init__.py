"""Builds and verifies the accelerator soft-slicing builder stages of the GPUStack Operator."""

__version__ = "0.1.0"
