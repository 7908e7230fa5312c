"""Measures a cell: from rows to records, figures and notes."""
