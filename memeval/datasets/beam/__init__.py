"""BEAM: chats of 100 thousand to 10 million tokens, and questions about ten abilities."""
