"""ConvoMem: what users and assistants said, asked among conversations that do not matter."""
