"""Services that complete a conversation: one file a wire API, and what they share."""
