"""How neighbours are told apart: worst-case values, statistics, and every client in turn."""
