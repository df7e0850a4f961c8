"""Detectors for strangers' texts and values: hidden text, secrets, instructions, look-alikes.

Pure functions: text in, findings out. All of it runs in time linear in the text.
"""
