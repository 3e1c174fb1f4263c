"""Stages, cases and hosts in one: what a matrix is, the order it is run in, and the folder it leaves.

A *unit* is one host and one stage with its cases. Each is an ordinary run with evidence of its own.
"""
