"""How an event log is checked, reduced to one timeline and charged; how amounts become estimates."""
