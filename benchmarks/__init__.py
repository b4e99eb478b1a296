"""What is measured, and against what: ratios of runs made side by side. Start at README.md."""
