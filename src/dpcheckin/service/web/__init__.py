"""What every party that answers clients over HTTP shares.

How often may be asked (`limits`), who may stay connected (`guard`), how a request is read
(`requests`) and what answers look like, byte for byte (`replies`). Nothing here knows what is
asked for.
"""
