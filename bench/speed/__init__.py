"""What bench/run measures, a module for each kind of row:

ns2, ns3      the dumbbell beside other simulators
flows, size   how time and memory grow with flows and with the network
big           runs others could not make: how many seconds
sweep         many runs at once
law           the control law and the floor under any simulator, alone
instructions  instructions counted instead of time, beside a baseline

`report` collects the verdicts, `ours` times xcpnet, `callgrind` reads what valgrind writes. Each
kind of row has a function `measure(ours, settings, report)` that prints its table and gives its
verdicts to the report.
"""
