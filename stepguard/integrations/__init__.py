"""Drop-ins for what a team already uses; each is imported only when it is used."""
