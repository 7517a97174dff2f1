"""The analyzer: announces plan, model and rounds, charges its ledger, opens reports, learns.

`core` decides without any I/O, `keys` and `state` keep what must survive, `remote` talks to the
shuffler, `daemon` puts them together, `page` shows them. Nothing is imported here.
"""
