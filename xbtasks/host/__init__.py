"""Where commands run: one interface, several transports, and one frame that every answer comes in."""
