"""Containers of a Swarm, each the only task of a service."""
