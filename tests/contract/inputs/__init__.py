"""Inputs as hospitals write them: each is read as other libraries read it, or named."""
