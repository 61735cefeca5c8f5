"""Reads a compose file by the compose specification, and prints it as JSON."""

import sys

from compose_spec import PyCompose

try:
    with open(sys.argv[1], encoding="utf-8") as file:
        read = PyCompose.from_yaml(file.read())
    read.validate()
    print(read.to_json())
except ValueError as error:
    sys.exit(str(error))
