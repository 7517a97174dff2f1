"""Certificates for Gaussian reports: which two types may stand in for every other client's report.

`certified_scales` reads the shipped table, `certified_scale` takes the first. The rest is the
program that proves it, in floating point with one-sided errors; docs/gaussian-certificate.md holds
the theorem and its proof. The modules `laplace` and `laplace_potential` prove the same of Laplace
reports when they are asked for (docs/laplace-certificate.md).
"""

from dpcheckin.accounting.certificates.table import (
    CertifiedTypes,
    certified_scale,
    certified_scales,
)

__all__ = ["CertifiedTypes", "certified_scale", "certified_scales"]
