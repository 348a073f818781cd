"""Substitutes for packages of AWS's training images."""
