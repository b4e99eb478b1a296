"""Where a page goes: one channel a file; ``choose.py`` reads them from a setting."""
