"""One gradient per client: the general engine, the fast one, and the choice between them."""
