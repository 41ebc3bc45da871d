"""Claude through the `claude` program of Claude Code: its wire, its process, and its sessions."""

VENDOR = "claude-cli"
