"""Components of the emulator, each with a start and a stop.

``emulator.app`` lists them in order.
"""
