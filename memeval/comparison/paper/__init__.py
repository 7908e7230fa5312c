"""The table of a paper: systems by metrics and categories, for LaTeX, Markdown, HTML and CSV."""
