"""Questions about one's own conversations: a model proposes them, and each is checked."""
