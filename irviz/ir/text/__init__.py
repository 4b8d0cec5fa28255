"""IR as text: labels and TVMScript."""
