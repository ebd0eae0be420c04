"""Asks over gRPC what it is told to, as a client that has nothing to do with the service.

One JSON object a line comes in, with an `id`, an `op` and the address it is about (`to`); answers go out the
same way, with the same `id`, in the order they are there. A call that fails is answered by its `error`: a
`code` and a `message`. Only `watch` has several answers.
"""

import base64
import collections
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

PATIENCE = 20
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"
# No proxy between two programs of one machine, and no connection that is another channel's, too.
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]

channels = {}
lock = threading.Lock()


def connect(to, roots=None):
    if roots is None:
        return grpc.insecure_channel(to, options=OPTIONS)
    options = OPTIONS + [("grpc.ssl_target_name_override", "localhost")]
    return grpc.secure_channel(to, grpc.ssl_channel_credentials(roots.encode()), options=options)


def channel(asked):
    """One for each address, as a proxy would keep it."""
    key = (asked["to"], asked.get("roots"))
    with lock:
        if key not in channels:
            channels[key] = connect(*key)
        return channels[key]


def deadline(asked):
    return asked.get("deadline", PATIENCE)


def error(failure):
    return {"error": {"code": failure.code().name, "message": failure.details() or ""}}


def message(asked):
    return json_format.ParseDict(asked["request"], rls_pb2.RateLimitRequest())


def limit(asked):
    stub = rls_pb2_grpc.RateLimitServiceStub(channel(asked))
    response = stub.ShouldRateLimit(message(asked), timeout=deadline(asked))
    return {"response": json_format.MessageToDict(response)}


def raw(asked):
    """Any bytes to any method."""
    compression = {"gzip": grpc.Compression.Gzip, None: None}[asked.get("compression")]
    call = channel(asked).unary_unary(asked["method"])
    metadata = [tuple(pair) for pair in asked.get("metadata", [])]
    answer = call(
        base64.b64decode(asked["bytes"]),
        timeout=deadline(asked),
        metadata=metadata,
        compression=compression,
    )
    return {"response": json_format.MessageToDict(rls_pb2.RateLimitResponse.FromString(answer))}


def health(asked):
    stub = health_pb2_grpc.HealthStub(channel(asked))
    request = health_pb2.HealthCheckRequest(service=asked["service"])
    status = stub.Check(request, timeout=deadline(asked)).status
    return {"status": health_pb2.HealthCheckResponse.ServingStatus.Name(status)}


def watch(asked):
    """Tells each status as it comes, until the stream ends."""
    stub = health_pb2_grpc.HealthStub(channel(asked))
    request = health_pb2.HealthCheckRequest(service=asked["service"])
    for answer in stub.Watch(request, timeout=deadline(asked)):
        name = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
        tell(asked["id"], {"status": name})
    return {"end": True}


class Database(ProtoReflectionDescriptorDatabase):
    """grpcio's own client, which knows the older name of the service only; the messages are the same."""

    def __init__(self, channel, version):
        super().__init__(channel)
        self._stub.ServerReflectionInfo = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )


def services(asked):
    return {"services": sorted(Database(channel(asked), asked["version"]).get_services())}


def symbol(asked):
    """The file that declares a symbol, and those it imports."""
    database = Database(channel(asked), asked["version"])
    try:
        file = database.FindFileContainingSymbol(asked["symbol"])
    except KeyError:
        return {"file": None}
    return {"file": file.name, "imports": list(file.dependency)}


def reflected(asked):
    """A call by what reflection tells of the service, and nothing else."""
    pool = descriptor_pool.DescriptorPool(Database(channel(asked), asked["version"]))
    method = pool.FindServiceByName(SERVICE).FindMethodByName("ShouldRateLimit")
    question = message_factory.GetMessageClass(method.input_type)()
    json_format.ParseDict(asked["request"], question, descriptor_pool=pool)
    call = channel(asked).unary_unary(
        f"/{SERVICE}/{method.name}",
        request_serializer=type(question).SerializeToString,
        response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
    )
    response = call(question, timeout=deadline(asked))
    return {"response": json_format.MessageToDict(response, descriptor_pool=pool)}


def many(asked):
    """The same call again and again from several threads over several channels, all at once."""
    request, threads = message(asked), asked["threads"]
    connected = [connect(to) for to in asked["to"] for _ in range(asked["channels"])]
    stubs = [rls_pb2_grpc.RateLimitServiceStub(channel) for channel in connected]
    for channel in connected:
        grpc.channel_ready_future(channel).result(timeout=PATIENCE)
    start, counts = threading.Barrier(threads), collections.Counter()

    def work(number):
        start.wait()
        for call in range(number, asked["calls"], threads):
            try:
                stub = stubs[call % len(stubs)]
                code = stub.ShouldRateLimit(request, timeout=deadline(asked)).overall_code
                name = rls_pb2.RateLimitResponse.Code.Name(code)
            except grpc.RpcError as failure:
                name = failure.code().name
            with lock:
                counts[name] += 1

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    for channel in connected:
        channel.close()
    return {"counts": counts}


OPERATIONS = {
    each.__name__: each for each in [limit, raw, health, watch, services, symbol, reflected, many]
}


def tell(number, answer):
    line = json.dumps({"id": number, **answer})
    with lock:
        print(line, flush=True)


def serve(asked):
    begun = time.monotonic()
    try:
        answer = OPERATIONS[asked["op"]](asked)
    except grpc.RpcError as failure:
        answer = error(failure)
    except Exception as failure:  # It is the test that has to know.
        answer = {"broken": repr(failure)}
    tell(asked["id"], {**answer, "seconds": time.monotonic() - begun})


def main():
    for line in sys.stdin:
        threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
