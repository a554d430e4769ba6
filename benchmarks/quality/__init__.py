"""The quality panel: streams, competitors and adversaries the default is held against."""
