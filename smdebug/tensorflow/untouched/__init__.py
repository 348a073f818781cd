"""Capture of Keras loops, tapes and sessions in scripts that know nothing of smdebug."""
