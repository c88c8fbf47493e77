"""What Offbook promises of speed and safety, measured on the machine at hand: `make bench`."""
