"""Keys of other systems, under which the installation's secret is encrypted where it is kept.

A secret that is kept as `wrapped.<provider>.<ciphertext>` is sent to its provider to be opened,
once by each process that starts. A provider is named by one text (COUNTERSIGN_KEY_PROVIDER), which
is kept with the ciphertext: secrets under several keys and providers can be read at the same time.
"""
