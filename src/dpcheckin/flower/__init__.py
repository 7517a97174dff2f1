"""Shuffled check-in on fleets that run Flower (flwr 1.41 to 1.42, extra `flower`).

Flower carries the control messages and the model; the agent of each client and the shuffler do
the rest, outside Flower. `doorbell` is the ClientApp, `server` the ServerApp's work, `mailbox` what
lies between doorbell and agents, `host` the agents that wait for the bell, `observations` tests
whether a SuperLink's log tells participants from others, `fleet` starts a whole fleet on one
machine. Nothing is imported here: a doorbell has to start fast.
"""
