"""Measurements for the documentation: broken systems that are caught, and tightness."""
