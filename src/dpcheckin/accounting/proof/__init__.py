"""Certificates: a run, its claim and what is needed to prove it again (docs/certificate.md).

Numbers are searched here in doubles and written down rounded to the safe side; `verify/check.py`, which shares no code
with this package, decides whether they prove the claim.
"""
