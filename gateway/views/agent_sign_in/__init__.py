"""Our own authorization server over HTTP: discovery, consent, and the endpoints of clients."""
