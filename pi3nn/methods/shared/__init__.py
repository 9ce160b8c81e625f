"""What methods share; nothing here is a method."""
