// Made by `make docs` (python -m offbook.reference) from the wire's shapes. Change those, not this file.
export {};
