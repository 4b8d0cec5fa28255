"""The arguments that functions are called with, from a session's inputs."""
