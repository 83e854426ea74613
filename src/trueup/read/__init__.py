"""The one reader: from what users have to columns that were checked."""
