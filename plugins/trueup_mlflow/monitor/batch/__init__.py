"""Batches and labels as they come: tables, periods, a watched folder."""
