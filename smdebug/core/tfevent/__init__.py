"""`smdebug.core.tfevent`: doors to the two names that code written for smdebug imports from here."""
