"""Claims with the attack that tests them: plans, reports, training, services, the papers."""
