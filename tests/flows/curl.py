"""Stands in for curl on a machine that has none.

It has the options that docs/en/guides/connect-clients.md uses.
"""

import argparse
import sys
import urllib.request


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", "-S", "-N", action="store_true", dest="quiet")
    parser.add_argument("-H", action="append", dest="headers", default=[])
    parser.add_argument("-d", dest="body")
    given = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in given.headers)
    request = urllib.request.Request(given.url, data=given.body.encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        sys.stdout.buffer.write(response.read())


if __name__ == "__main__":
    main()
