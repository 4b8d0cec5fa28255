"""Worker processes, which run anything that might crash, hang, or take too much memory."""
