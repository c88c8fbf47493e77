// Made by `make docs` from the wire's shapes. Change those, not this file.
export {};
