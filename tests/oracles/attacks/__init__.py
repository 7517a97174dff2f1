"""Brute-force attacks on the guarantees of one round, and of two, by random search and by climbing.

`crowds` says what a batch of data sets is and how it changes a little; `hemispheres`, `pure`,
`caps` and `noisy` turn batches into rows of reports. `shuffles` enumerates what the analyzer sees
of a whole batch at once; `seats` labels them, `lattice` and `many_clients` for many clients.
`arenas` are rounds to fight over, `climb` does the fighting and the counting, `kinds` names what
there is, and `guarantees`, alone of all, asks the package.
"""
