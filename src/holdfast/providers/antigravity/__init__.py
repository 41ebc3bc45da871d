"""Code Assist, the service behind Antigravity and the Gemini CLI: Gemini and Claude, by Google
accounts of the user's own."""
