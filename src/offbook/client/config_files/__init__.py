"""Configuration files of other programs: JSON5 read with its comments and changed in place (`editing`), TOML (`toml`),
shown without their secrets and replaced in one step with a backup beside them (`file`). Whose they are nothing here
knows."""
