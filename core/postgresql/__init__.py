"""Django's PostgreSQL, with connections that are looked at before they are used."""
