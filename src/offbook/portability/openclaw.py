"""OpenClaw's transcripts, from every form its versions have kept them in.

`places` knows the files, `database` and `lines` read them, `events` decides what an entry is, `mapping` makes the
message of it, `catalogue` puts the transcripts of a session in order, `importing` tells them to a provider.
Nothing here writes into the host's folder.
"""
