"""Configuration files of other programs: read with their comments (`json5`), changed in place (`editing`), shown
without their secrets (`masking`), replaced in one step with a backup beside them (`file`). Whose they are nothing here
knows."""
