"""Tests of the documentation: the pages run, the references are fresh, the site builds."""
