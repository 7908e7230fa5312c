"""The store in PostgreSQL: rows, texts, replies and leases that several machines share."""
