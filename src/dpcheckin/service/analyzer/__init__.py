"""The analyzer: announces plan, model and rounds, charges its ledger, opens reports, learns.

`core` decides without any I/O; `ledger` and `state` keep what must survive; `batches` opens and adds up reports;
`parties` talks to shuffler and issuer; `daemon` puts them together; `board` is what they show; `settings` and `server`
make it a process. Nothing is imported here.
"""
