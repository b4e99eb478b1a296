"""The documentation is run: every fenced block, link, name and table in it."""
