"""Where runs are computed: in this process, in others beside it, or on a Ray cluster."""
