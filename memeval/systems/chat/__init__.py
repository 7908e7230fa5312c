"""Systems that keep a conversation as an agent's chat window does."""
