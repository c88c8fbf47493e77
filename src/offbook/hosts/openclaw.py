"""OpenClaw: its configuration file, what to change in it, and the proof that turns go through Offbook."""
