"""The issuer: signs one report token for each client and round, without seeing the token.

`private_keys` signs, `store` remembers, `core` decides, `http` answers, `server` runs it. Nothing is imported here.
"""
