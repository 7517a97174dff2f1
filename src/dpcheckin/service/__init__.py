"""The deployable system: what clients, shuffler and analyzer say, and the three of them.

`envelope`, `documents`, `problems`, `credentials` and `tls` are the common language, described byte
by byte in `docs/wire.md`; `shuffler`, `analyzer` and `client` are the three parties. Nothing is
imported here, so that a client does not load a server.
"""
