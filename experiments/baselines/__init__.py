"""Other people's methods on our data: one thin adapter a family, each run in a process and environment of its own."""
