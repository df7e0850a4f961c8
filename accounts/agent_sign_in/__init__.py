"""Our own authorization server: users sign in agents' clients, which then act for them.

Source: OAuth 2.1; MCP 2026-07-28, basic/authorization. Clients are public: none has a secret.
"""
