"""What the parties say to each other, byte by byte as `docs/wire.md` has it.

`canonical`, `documents` and `signing` are what the analyzer announces; `envelope` and `payloads` what a client sends;
`credentials` and `problems` what goes with every request and every refusal. Nothing here knows a party, a socket or a
file. Nothing is imported here.
"""
