"""What people read: the papers' tables and figures recomputed, comparisons, pictures, pages."""
