"""What several test folders share: builders, checks and seeds."""
