"""The ClientApp: a doorbell. Data, coin and noise are in the node's agent, not here."""

from dpcheckin.flower.doorbell import make_doorbell

app = make_doorbell()
