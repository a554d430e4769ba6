"""Mutation testing: the code is broken on purpose, one place at a time, and tests must notice."""
