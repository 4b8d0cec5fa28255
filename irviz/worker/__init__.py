"""Worker processes, for what might crash, hang, or take too much memory."""
