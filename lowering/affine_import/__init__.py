"""Compile affine functions that come from elsewhere."""
