"""The SimPy driver's parts: the story (clock and log), saves in flight, nodes and their repair, fault clocks."""
