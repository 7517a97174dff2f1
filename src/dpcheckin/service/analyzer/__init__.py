"""The analyzer: announces plan, model and rounds, charges its ledger, opens reports, learns.

`core` decides without any I/O; `ledger`, `keys` and `state` keep what must survive; `batches` opens
and adds up reports; `shuffler_client` talks to the shuffler; `daemon` puts them together; `board`
and `page` show them; `settings` and `server` make it a process. Nothing is imported here.
"""
