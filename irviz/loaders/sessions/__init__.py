"""The archive and the values of a session's file; `irviz.session.session_file` reads both."""
