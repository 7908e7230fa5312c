"""Text that leaves memeval: shown safely, without secrets, in words that hyphenate and count."""
