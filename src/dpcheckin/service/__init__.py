"""The deployable system: what clients, shuffler and analyzer say, and the three of them.

`wire` is the common language, described byte by byte in `docs/wire.md`; `shuffler`, `analyzer` and
`client` are the three parties, and none imports another. The modules beside them serve more than
one: `pricing` (what a plan costs), `reports` (from a value to an envelope), `journal` (the file
under both ledgers), `tasks` (what is learned), `settings_file`, `json_logs`, `listening` and `tls`.
Nothing is imported here, so that a client does not load a server.
"""
