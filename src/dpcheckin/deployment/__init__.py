"""Models of `learning` trained through the parties of `service`, and the demonstration.

The services know neither torch nor data; this layer stands above both and joins them. Nothing is imported here.
"""
