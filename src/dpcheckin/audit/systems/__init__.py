"""What is attacked: datasets that differ in one client, and systems that release batches."""
