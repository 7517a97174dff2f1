"""What parties keep on disk.

`files` and `identity` have folders, locks and secrets, `journal` the file under every ledger, `database` what stores
have in common, `backup_file` copies of either. Nothing is imported here.
"""
