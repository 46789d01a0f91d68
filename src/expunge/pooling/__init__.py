"""Rows without labels that sharpen what is known of those with labels."""
