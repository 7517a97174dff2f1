"""Features that cost no privacy: fixed transforms of each client's own record, cached on disk."""
