"""What every party that answers clients over HTTP shares.

How often may be asked (`limits`), who may stay connected (`guard`), under which names (`hosts`), how a request is read
(`requests`), what answers look like, byte for byte (`replies`), who asks and what is counted (`front`, `metrics`), how
a party runs (`server`). Nothing here knows what is asked for, and nothing is imported here.
"""
