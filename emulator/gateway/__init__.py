"""What speaks HTTP: who may ask, what is asked, and the wire's form of requests and answers."""
