"""Questions about the user's own conversations: a model proposes them, and each is checked."""
