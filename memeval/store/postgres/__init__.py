"""The store in PostgreSQL: rows, texts, replies, claims and places that several machines share."""
