"""ConvoMem: questions on users' and assistants' statements among other conversations."""
