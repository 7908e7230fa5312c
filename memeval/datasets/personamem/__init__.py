"""PersonaMem: which response suits a user whose preferences changed over many sessions."""
