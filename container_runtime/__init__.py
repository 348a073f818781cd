"""Runs containers: one small interface, one package a back end."""
