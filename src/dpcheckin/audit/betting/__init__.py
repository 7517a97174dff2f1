"""From how often an event was seen to a lower bound on epsilon: bets, stakes and events."""
