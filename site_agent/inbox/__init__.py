"""The site's inbox: pages of a local web application, in which staff decide on studies.

It listens on the loopback address only, and a browser is admitted by a one-time token. It shares
its decisions and files with the commands.
"""
