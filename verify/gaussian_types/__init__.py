"""The program that makes and proves the table of types of Gaussian reports (docs/gaussian-certificate.md).

In floating point with one-sided errors. The package ships the table and reads it; this program proves its entries.
"""
