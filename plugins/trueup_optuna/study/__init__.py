"""What a study knows: its seeds, its companions, its ranking and its report."""
