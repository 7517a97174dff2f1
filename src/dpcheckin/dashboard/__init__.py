"""The planner page: `dpcheckin ui` serves it on this machine.

`form` says what can be chosen, `answers` computes (in worker processes, see `workers`), `texts` writes a plan as a
command, as Python and as JSON, `runs` reads training folders, `server` puts it all behind a few addresses. What the
browser runs is in `static`, written by hand, without a build.
"""
