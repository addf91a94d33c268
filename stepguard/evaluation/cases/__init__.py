"""A user's own procedure as a task family: files of cases, checked before anything is paid for."""
