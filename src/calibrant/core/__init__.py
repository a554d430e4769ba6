"""Value types and rules for input that everything else is written in."""
