"""The probe: a C program of ours that asks the CUDA driver and NVML what a workload would ask them.

Its sources lie here and are compiled on the host; :mod:`.operations` says what it can be asked, and
:mod:`.report` reads what it answers.
"""
