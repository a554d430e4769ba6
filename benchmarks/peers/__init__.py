"""Other libraries on our streams, each in an environment of its own."""
