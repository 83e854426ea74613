"""Processes that crash, wait and are interrupted."""
