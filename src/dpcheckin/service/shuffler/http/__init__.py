"""The shuffler over HTTP: requests in, answers out, and the limits that keep it standing.

`app` takes reports and authenticates, `routes` has everything else, `replies` the answers byte for
byte, `guard` the connections, `limits` what may be set, `metrics` and `logs` what an operator sees.
What may happen is decided by the core beside this package. Nothing is imported here.
"""
