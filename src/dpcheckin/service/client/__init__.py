"""The client agent: it belongs to the owner of the data and obeys its own configuration.

`config` is what the owner allows, `core` decides without any I/O, `ledger` remembers, `daemon` talks to the shuffler
over a `connection` and by its `timekeeping`. Nothing is imported here.
"""
