"""Restart layers: what each one contains, how long its phases take and when it gives up."""
