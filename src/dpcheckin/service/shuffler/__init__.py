"""The shuffler: takes sealed reports from clients, forgets who sent them, releases them permuted.

`core` holds the rules and does no I/O of its own; `stores` keep what must survive; `committer` makes many reports
durable at once; `http` speaks to the world; `settings` and `server` put them together. Nothing is imported here.
"""
