"""The PostgreSQL server of the service tests serves deployments too."""

from service.conftest import postgres, postgres_address

__all__ = ["postgres", "postgres_address"]
