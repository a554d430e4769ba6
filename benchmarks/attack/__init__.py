"""Attacks on states, tickets, coins and the command line, in one command: ``script/attack``."""
