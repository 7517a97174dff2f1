"""The deployable system: what clients, shuffler and analyzer say, and the three of them.

`wire` is the common language, described byte by byte in `docs/wire.md`; `shuffler`, `analyzer` and `client` are the
three parties, and none imports another. What is beside them serves more than one: `storage` (what is kept on disk),
`web` (answering over HTTP), `pricing` (what a plan costs), `reports` (from a value to an envelope), `tasks` (what is
learned), `settings`, `logs` and `tls`. Nothing is imported here, so that a client does not load a server.
"""
