"""Calls the health service of a server, twice and once again with retries, and prints what it sees."""

import json
import sys
import time

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

METHOD = "/grpc.health.v1.Health/Check"
RETRIES = {
    "methodConfig": [{
        "name": [{}],
        "retryPolicy": {
            "maxAttempts": 3,
            "initialBackoff": "0.001s",
            "maxBackoff": "0.002s",
            "backoffMultiplier": 1,
            "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"],
        },
    }]
}


def call(address, options):
    """The answer to a call, and how long it took."""
    with grpc.insecure_channel(address, options) as channel:
        check = channel.unary_unary(METHOD)
        began = time.monotonic()
        try:
            check(b"", timeout=60)
            answer = {"code": "OK"}
        except grpc.RpcError as error:
            answer = told(error)
        return answer | {"waited": time.monotonic() - began}


def told(error):
    answer = {"code": error.code().name, "message": error.details()}
    trailers = {name: value for name, value in error.trailing_metadata() if isinstance(value, str)}
    answer["pushback"] = trailers.get("grpc-retry-pushback-ms")
    answer["subjects"] = []
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        retry, quota = error_details_pb2.RetryInfo(), error_details_pb2.QuotaFailure()
        if detail.Unpack(retry):
            answer["retry_ms"] = retry.retry_delay.ToMilliseconds()
        elif detail.Unpack(quota):
            answer["subjects"] = [violation.subject for violation in quota.violations]
    return answer


address = sys.argv[1]
plain = [("grpc.enable_retries", 0)]
retrying = [("grpc.enable_retries", 1), ("grpc.service_config", json.dumps(RETRIES))]
print(json.dumps([call(address, plain), call(address, plain), call(address, retrying)]))
