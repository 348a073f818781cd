"""Container back ends behind one small interface, each in a package of its own."""
