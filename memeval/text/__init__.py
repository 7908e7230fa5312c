"""Text: shown safely, kept free of secrets and personal data, and split into words."""
