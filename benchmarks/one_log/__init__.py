"""One log, four ways: the same events through library, command line, service and Spark."""
