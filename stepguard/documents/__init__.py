"""Documents: where a number or a name stands in a text, and to which currency it belongs."""
