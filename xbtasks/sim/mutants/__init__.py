"""Mutants: the sample checkout and its host, each with one fault, and the row that must notice it.

A verifier is worth what it refuses. Each mutant changes one thing in a copy of the sample checkout, in what
reaches the engine, or in the cards of the simulated host, and is built and judged as any stage is. Beside
them stand good variants, which differ and are right: a case that fails one of them is wrong itself.

Contract: the mutants that were measured on the genuine HAMi-core and vcann-rt, and the traps found there.
"""
