"""moto's S3 as a process of its own: ``python bucket_server.py PORT``.

Requests are taken one at a time, because moto looks and writes in two steps, and a real store's
conditional write is one. ``PUT /fill?bucket=...&prefix=...&count=...`` makes many objects at once.
"""

import sys
import threading
from urllib.parse import parse_qsl

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


def fill(bucket: str, prefix: str, count: str) -> None:
    for number in range(int(count)):
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, f"{prefix}/n{number}", b"")


def serve(port: int) -> None:
    application, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ, start_response):
        with one:
            if environ["PATH_INFO"] == "/fill":
                fill(**dict(parse_qsl(environ["QUERY_STRING"])))
                start_response("200 OK", [])
                return [b""]
            return application(environ, start_response)

    run_simple("127.0.0.1", port, answer, threaded=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
